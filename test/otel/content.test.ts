import { defineShield, patternShield } from '../../src/index.js'
import { played, stage } from '../support/play.js'
import { Recorded } from '../support/spans.js'
import { call, text, tool } from '../support/tools.js'

const userText = 'said-by-the-user'
const answered = 'said-by-the-model'
const instructed = 'said-by-the-app'
const callText = 'asked-of-the-tool'
const returned = 'said-by-the-tool'
const everything = [userText, answered, instructed, callText, returned]

const look = () => tool('look', () => returned)
const turns = [call('look', { what: callText }), text(answered)]
const variable = 'OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT'

afterEach(() => {
  delete process.env[variable]
})

async function wordsOf(options: object, more: object = {}): Promise<string> {
  const recorded = new Recorded()
  const theatre = await stage(turns, {
    instructions: instructed,
    tools: [look()],
    telemetry: recorded.otel(options),
    ...more,
  })
  await theatre.run(userText).run.result
  return recorded.words
}

describe('the content of a run', () => {
  it('is in no span by default', async () => {
    const words = await wordsOf({})
    for (const one of everything) expect(words).not.toContain(one)
  })

  it('is in no span of a run that fails', async () => {
    const recorded = new Recorded()
    const broken = tool('look', () => {
      throw new Error(returned)
    })
    const theatre = await stage(
      [call('look', { what: callText }), { status: 400, error: { message: `You said: ${userText}` } }],
      { instructions: instructed, tools: [broken], telemetry: recorded.otel() },
    )
    expect((await theatre.run(userText).run.result).state).toBe('ERROR')
    for (const one of everything) expect(recorded.words).not.toContain(one)
  })

  it('is in no span if the model calls an unknown tool', async () => {
    const recorded = new Recorded()
    await played([call(answered), text('Done.')], { telemetry: recorded.otel() })
    expect(recorded.words).not.toContain(answered)
    const [called] = recorded.named('execute_tool')
    expect(called?.name).toBe('execute_tool unknown_tool')
    expect(called?.attributes).toMatchObject({
      'statewright.tool.status': 'unknown_tool',
      'error.type': 'unknown_tool',
    })
  })

  it('is in the spans with captureContent, in the format of the conventions', async () => {
    const recorded = new Recorded()
    const theatre = await stage(turns, {
      instructions: instructed,
      tools: [look()],
      telemetry: recorded.otel({ captureContent: true }),
    })
    await theatre.run(userText).run.result
    const [first, second] = recorded.named('chat').map(({ attributes }) => attributes)
    const read = (value: unknown): unknown => JSON.parse(String(value))
    expect(read(first?.['gen_ai.system_instructions'])).toEqual([{ type: 'text', content: instructed }])
    expect(read(first?.['gen_ai.input.messages'])).toEqual([
      { role: 'user', parts: [{ type: 'text', content: userText }] },
    ])
    const asks = { type: 'tool_call', id: 'call_1_1', name: 'look', arguments: `{"what":"${callText}"}` }
    expect(read(first?.['gen_ai.output.messages'])).toEqual([{ role: 'assistant', parts: [asks] }])
    expect(read(second?.['gen_ai.input.messages'])).toEqual([
      { role: 'user', parts: [{ type: 'text', content: userText }] },
      { role: 'assistant', parts: [asks] },
      { role: 'tool', parts: [{ type: 'tool_call_response', id: 'call_1_1', response: returned }] },
    ])
    expect(read(second?.['gen_ai.output.messages'])).toEqual([
      { role: 'assistant', parts: [{ type: 'text', content: answered }] },
    ])
    expect(recorded.named('execute_tool')[0]?.attributes).toMatchObject({
      'gen_ai.tool.call.arguments': `{"what":"${callText}"}`,
      'gen_ai.tool.call.result': returned,
    })
  })

  it.each(['SPAN_ONLY', 'span_and_event', 'true'])('is in the spans with the variable %s', async (value) => {
    process.env[variable] = value
    const words = await wordsOf({})
    for (const one of everything) expect(words).toContain(one)
    const off = await wordsOf({ captureContent: false })
    for (const one of everything) expect(off).not.toContain(one)
  })

  it.each(['EVENT_ONLY', 'NO_CONTENT', ''])('is in no span with the variable %p', async (value) => {
    process.env[variable] = value
    expect(await wordsOf({})).not.toContain(userText)
  })

  it('is never included if a shield withholds it', async () => {
    const withheld = (word: string) =>
      patternShield({ name: 'words', patterns: [new RegExp(word)], action: 'redact' } as never)
    const words = await wordsOf(
      { captureContent: true },
      {
        shields: {
          input: [withheld(userText)],
          toolInput: [withheld(callText)],
          toolOutput: [withheld(returned)],
          output: [withheld(answered)],
        },
      },
    )
    for (const one of [userText, callText, returned, answered]) expect(words).not.toContain(one)
    expect(words).toContain(instructed)
  })

  it('contains the answer that a shield has cleared, in a request of unchanged duration', async () => {
    const recorded = new Recorded()
    let lookedAt = 0
    const hides = defineShield({
      name: 'hides',
      check: (content) => {
        lookedAt ||= performance.timeOrigin + performance.now()
        return { action: 'redact', content: content.replaceAll('heron', '…') }
      },
    })
    await played([text('A heron.')], {
      stream: false,
      shields: { output: [hides] },
      telemetry: recorded.otel({ captureContent: true }),
    })
    const [chat] = recorded.named('chat')
    expect(chat?.attributes['gen_ai.output.messages']).toContain('A ….')
    const [seconds = 0, nanos = 0] = chat?.endTime ?? []
    expect(recorded.words).not.toContain('heron')
    expect(seconds * 1e3 + nanos / 1e6).toBeLessThanOrEqual(lookedAt)
  })

  it('never includes a sub-agent’s text if a shield of the parent run checks its answers', async () => {
    const child = await stage([call('look', { what: callText }), text(answered)], { tools: [look()] })
    const research = child.agent.asTool({ name: 'research', description: 'Finds things out.' })
    const recorded = new Recorded()
    const theatre = await stage([call('research', { task: 'Go.' }), text('Done.')], {
      tools: [research as never],
      shields: {
        toolOutput: [patternShield({ name: 'words', patterns: [new RegExp(answered)], action: 'redact' })],
      },
      telemetry: recorded.otel({ captureContent: true }),
    })
    await theatre.run(userText).run.result
    expect(recorded.named('chat')).toHaveLength(4)
    for (const one of [callText, returned, answered]) expect(recorded.words).not.toContain(one)
    expect(recorded.words).toContain(userText)
  })

  it('has its secrets scrubbed', async () => {
    const recorded = new Recorded()
    const secret = 'sk-abcdefghijklmnopqrstuvwxyz'
    const theatre = await stage([call('look', { key: secret }), text(`It is ${secret}.`)], {
      instructions: `Your key is ${secret}.`,
      tools: [tool('look', () => `It is ${secret}.`)],
      telemetry: recorded.otel({ captureContent: true }),
    })
    await theatre.run(`Mine is ${secret}.`).run.result
    expect(recorded.words).not.toContain(secret)
    expect(recorded.words).toContain('Mine is [redacted].')
  })

  it('beyond 32,000 characters is omitted part by part, the oldest first, with a marker', async () => {
    const recorded = new Recorded()
    const huge = 'x'.repeat(20_000)
    await played([call('look'), call('look'), text('Done.')], {
      tools: [tool('look', () => huge)],
      toolCalls: { maxResultChars: 50_000 },
      telemetry: recorded.otel({ captureContent: true }),
    })
    const last = recorded.named('chat').at(-1)?.attributes['gen_ai.input.messages'] as string
    expect(last.length).toBeLessThan(33_000)
    const messages = JSON.parse(last) as { role: string; parts: { content?: string; response?: string }[] }[]
    expect(messages[0]?.parts[0]?.content).toMatch(/^\[statewright: a part of 20\d+ characters omitted/)
    expect(messages.at(-1)?.parts[0]?.response).toBe(huge)
    expect(last.split(huge)).toHaveLength(2)
  })

  it('is omitted as a whole if one result is longer', async () => {
    const recorded = new Recorded()
    await played([call('look'), text('Done.')], {
      tools: [tool('look', () => 'x'.repeat(40_000))],
      toolCalls: { maxResultChars: 50_000 },
      telemetry: recorded.otel({ captureContent: true }),
    })
    const [called] = recorded.named('execute_tool')
    expect(called?.attributes['gen_ai.tool.call.result']).toMatch(
      /^\[statewright: a part of 40000 characters/,
    )
  })

  it('contains only the type of a file', async () => {
    const recorded = new Recorded()
    const data = 'iVBORw0KGgo='
    const theatre = await stage([text('A heron.')], { telemetry: recorded.otel({ captureContent: true }) })
    await theatre.run([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'What is it?' },
          { type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } },
        ],
      },
    ]).run.result
    expect(recorded.words).not.toContain(data)
    expect(recorded.words).toContain('modality')
  })

  it('stays out if a shield has blocked it', async () => {
    const recorded = new Recorded()
    const blocks = defineShield({
      name: 'no',
      check: () => ({ action: 'block' as const, message: 'Not that.' }),
    })
    const theatre = await stage([text('Never.')], {
      shields: { input: [blocks] },
      telemetry: recorded.otel({ captureContent: true }),
    })
    expect((await theatre.run(userText).run.result).state).toBe('BLOCKED')
    expect(recorded.words).not.toContain(userText)
    expect(recorded.named('statewright.shield')[0]?.attributes).toMatchObject({
      'statewright.shield.action': 'block',
      'statewright.shield.names': ['no'],
    })
  })
})
