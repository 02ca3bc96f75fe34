import { z } from 'zod'
import { patternShield, type Run, type RunResult, toolContent } from '../../src/index.js'
import type { Turn } from '../../src/rehearsal/index.js'
import {
  type Protocol,
  toUIMessages,
  toUIMessageStream,
  type UIMessage,
  type UIMessageChunk,
  toUIMessageStreamResponse,
} from '../../src/ui/index.js'
import { again, type Stage, stage, type StageOptions, until } from '../support/play.js'
import { call, calls, text, tool } from '../support/tools.js'
import { chunksOf, messageOf, protocol as own } from './client.js'
import { partsOf } from './parts.js'

const done = text('Done.')
const longInput = { text: 'The heron stands in the water. '.repeat(10) }

interface Seen {
  chunks: UIMessageChunk[]
  /** The messages after a reload. */
  reloaded: UIMessage[]
  result: RunResult
  theatre: Stage
}

/** All events of a run for a page; `answer` answers its requests. */
async function seen(
  turns: readonly Turn[],
  options: StageOptions = {},
  protocol: Protocol = own,
  {
    answer = approveAll,
    act,
  }: { answer?: (run: Run, result: RunResult) => void; act?: (run: Run) => void } = {},
): Promise<Seen> {
  const theatre = await stage(turns, options)
  const play = theatre.run().skipBackOff()
  const { run } = play
  act?.(run)
  const chunks: UIMessageChunk[] = []
  for (;;) {
    for await (const chunk of toUIMessageStream(run, { protocol })) chunks.push(chunk)
    const result = await run.result
    if (!result.resumable) {
      return { chunks, reloaded: toUIMessages(result.messages, [], { protocol }), result, theatre }
    }
    answer(run, result)
  }
}

function approveAll(run: Run, { pending = [] }: RunResult): void {
  if (pending.length === 0) run.resume()
  for (const question of pending) run.approve(question)
}

const kinds = (chunks: readonly UIMessageChunk[]): string[] =>
  chunks.map(({ type }) => type).filter((type) => !['data-statewright', 'message-metadata'].includes(type))

const withheld = patternShield({ name: 'words', patterns: [/zebra/], action: 'redact', replacement: 'horse' })

const searcher = (theatre: { agent: { asTool: Stage['agent']['asTool'] } }) =>
  theatre.agent.asTool({ name: 'research', description: 'Researches.', maxSteps: 5 })

/** Runs that pages see, by their content. */
const scenarios: Record<string, () => Promise<Seen>> = {
  'a text': () => seen([text('Hello.')]),
  'a text in one response': () => seen([text('Hello.')], { stream: false }),
  'reasoning before a text': () => seen([text('42.', { reasoning: 'Six by seven.' })]),
  'calls and their results': () =>
    seen([calls([['look'], ['look']], { text: 'Let me see.' }), done], {
      tools: [tool('look', () => ({ at: 1 }))],
    }),
  'a call that fails, and one of no tool': () =>
    seen([calls([['look'], ['nothing']]), done], {
      tools: [
        tool('look', () => {
          throw new Error('No.')
        }),
      ],
    }),
  'a retry in the middle of arguments': () =>
    seen([call('look', longInput, { text: 'Let me see.', cutAfter: 6 }), call('look', { at: 1 }), done], {
      tools: [tool('look')],
    }),
  'a retry that calls nothing': () =>
    seen([call('look', longInput, { text: 'Let me see.', cutAfter: 6 }), done], { tools: [tool('look')] }),
  'a failure in the middle of arguments': () =>
    seen([call('look', longInput, { cutAfter: 6 })], { tools: [tool('look')], retry: { maxAttempts: 1 } }),
  'arguments that are no JSON': () => seen([call('look', '{"a'), done], { tools: [tool('look')] }),
  'an approval': () =>
    seen([call('pay', { to: 'Ann' }), done], { tools: [tool('pay', () => 'paid', { needsApproval: true })] }),
  'a rejection': () =>
    seen([call('pay'), done], { tools: [tool('pay', () => 'paid', { needsApproval: true })] }, own, {
      answer: (run, { pending = [] }) => pending.forEach((question) => run.reject(question, 'No.')),
    }),
  'a retry in the middle of a text': () => seen([text('Half of', { cutAfter: 1 }), text('Whole.')]),
  'a limit': () => seen([call('look')], { tools: [tool('look')], limits: { maxSteps: 1 } }),
  'a failure': () => seen([{ status: 400 }]),
  'a text that was cut': () => seen([text('One, ', { finishReason: 'length' }), text('two.')]),
  'a shield that redacts': () => seen([text('A zebra.')], { shields: { output: [withheld] } }),
  'an object': () => seen([text('{"done":true}')], { output: z.object({ done: z.boolean() }) }),
  'a picture of a tool': () =>
    seen([call('shot'), done], {
      tools: [tool('shot', () => toolContent([{ type: 'image', image: 'https://a.example/a.png' }]))],
    }),
  memory: () =>
    seen([done], { memory: { retrieve: async () => [{ source: 'leave.md', text: '30 days.' }] } as never }),
}

describe('the client accepts', () => {
  it.each(Object.keys(scenarios))('%s, and shows the same after a reload', async (name) => {
    const { chunks, reloaded } = await (scenarios[name] as () => Promise<Seen>)()
    const message = await messageOf(chunks as never)
    const found = ['memory'].includes(name)
    expect(message?.id).toBe(reloaded[1]?.id ?? message?.id)
    const shown = partsOf(message).filter(
      (part) => !found || (part as { type: string }).type !== 'source-document',
    )
    expect(shown).toEqual(partsOf(reloaded[1]))
  })
})

it('text is streamed and reset by a retry; ai 6 only receives final text', async () => {
  const turns = [text('Half of', { cutAfter: 1 }), text('Whole.')]
  const { chunks } = await seen(turns, {}, 'v7')
  expect(kinds(chunks)).toEqual(expect.arrayContaining(['reset-step']))
  expect(kinds(chunks).filter((type) => type === 'start-step')).toHaveLength(1)
  const late = (await seen(turns, {}, 'v6')).chunks
  expect(kinds(late)).toEqual([
    'start',
    'start-step',
    'text-start',
    'text-delta',
    'text-end',
    'finish-step',
    'finish',
  ])
  expect(late).toContainEqual(expect.objectContaining({ delta: 'Whole.' }))
})

it('arguments are streamed to ai 7; ai 6 receives complete calls', async () => {
  const turns = [call('look', longInput), done]
  const { chunks } = await seen(turns, { tools: [tool('look')] }, 'v7')
  const types = kinds(chunks)
  const first = types.indexOf('tool-input-start')
  const last = types.lastIndexOf('tool-input-delta')
  expect(first).toBeGreaterThan(0)
  expect(types.slice(first + 1, last + 1)).toEqual(Array(last - first).fill('tool-input-delta'))
  expect(last - first).toBeGreaterThan(10)
  expect(types[last + 1]).toBe('tool-input-available')
  const deltas = chunks.flatMap((chunk) => (chunk.type === 'tool-input-delta' ? [chunk.inputTextDelta] : []))
  expect(JSON.parse(deltas.join(''))).toEqual(longInput)
  const late = (await seen(turns, { tools: [tool('look')] }, 'v6')).chunks
  expect(kinds(late).filter((type) => type.startsWith('tool-input'))).toEqual(['tool-input-available'])
})

it.each([
  ['a person stops the run', true],
  ['the provider breaks off', false],
])('incomplete arguments are removed when %s', async (_, isStopped) => {
  const cut = isStopped ? { hang: 6 } : { cutAfter: 6 }
  const options = { tools: [tool('look')], retry: { maxAttempts: 1 } }
  const { chunks } = await seen([call('look', longInput, { ...cut, text: 'Let me see.' })], options, 'v7', {
    act: (run) => {
      run.events$.subscribe((event) => {
        if (isStopped && event.type === 'tool_call_delta' && event.delta !== '') run.cancel()
      })
    },
  })
  const types = kinds(chunks)
  expect(types).toContain('tool-input-delta')
  const after = types.slice(types.lastIndexOf('reset-step') + 1)
  expect(after.slice(0, 3)).toEqual(['text-start', 'text-delta', 'text-end'])
  expect(after.some((type) => type.startsWith('tool-'))).toBe(false)
})

it('omits text that a shield has not cleared, in both protocols', async () => {
  for (const protocol of ['v6', 'v7'] as const) {
    const { chunks } = await seen([text('A zebra.')], { shields: { output: [withheld] } }, protocol)
    expect(JSON.stringify(chunks)).not.toContain('zebra')
    expect(JSON.stringify(chunks)).toContain('horse')
  }
})

it('an approval request ends the message, and the rest continues it', async () => {
  const { chunks } = await scenarios['an approval']!()
  const at = chunks.findIndex(({ type }) => type === 'finish')
  const starts = chunks.flatMap((chunk) => (chunk.type === 'start' ? [chunk.messageId] : []))
  expect(chunks[at]).toEqual({ type: 'finish', finishReason: 'tool-calls' })
  expect(chunks.slice(0, at).map(({ type }) => type)).toContain('tool-approval-request')
  expect(starts).toEqual([starts[0], starts[0]])
  expect(chunks.filter(({ type }) => type === 'tool-approval-request')).toHaveLength(1)
})

it('a sub-agent shows its activity next to its call, and its requests in the same message', async () => {
  const theatre = await stage([call('research', { task: 'Pay.' }), done], {})
  const child = await stage([call('pay', { to: 'Ann' }), text('Paid, it says.')])
  const worker = again(child, { tools: [tool('pay', () => 'paid', { needsApproval: true })] })
  const agent = again(theatre, { tools: [searcher({ agent: worker })] })
  const run = agent.run('Go.')
  const chunks: UIMessageChunk[] = []
  for await (const chunk of toUIMessageStream(run)) chunks.push(chunk)
  const { pending = [], messages } = await run.result
  expect(chunks).toContainEqual(
    expect.objectContaining({
      type: 'tool-input-available',
      dynamic: true,
      title: 'research › pay',
      input: { to: 'Ann' },
    }),
  )
  const part = toUIMessages(messages, pending).at(-1)?.parts.at(-1)
  expect(part).toMatchObject({ type: 'dynamic-tool', state: 'approval-requested', title: 'research › pay' })
  for (const each of pending) run.approve(each)
  for await (const chunk of toUIMessageStream(run)) chunks.push(chunk)
  const message = await messageOf(chunks as never)
  expect(message?.parts).toContainEqual(
    expect.objectContaining({
      type: 'dynamic-tool',
      toolName: 'pay',
      state: 'output-available',
      output: 'paid',
    }),
  )
  expect(message?.parts).toContainEqual(
    expect.objectContaining({
      type: 'data-child',
      data: expect.objectContaining({
        text: 'Paid, it says.',
        calls: [expect.objectContaining({ status: 'ok' })],
      }),
    }),
  )
  expect(chunks.filter(({ type }) => type === 'data-child-text').length).toBeGreaterThan(0)
  expect(chunks).toContainEqual(
    expect.objectContaining({ type: 'tool-output-available', toolCallId: 'call_1_1' }),
  )
})

it('steering appears inside the message', async () => {
  for (const [protocol, type] of [
    ['v7', 'steering-message'],
    ['v6', 'data-steering'],
  ] as const) {
    const slow = tool('look', () => {
      runs.at(-1)?.steer('Hurry.')
      return 'seen'
    })
    const runs: Run[] = []
    const { chunks, reloaded } = await seen([call('look'), done], { tools: [slow] }, protocol, {
      act: (run) => runs.push(run),
    })
    expect(chunks.map((chunk) => chunk.type)).toContain(type)
    expect(reloaded).toHaveLength(2)
    expect(reloaded[1]?.parts.map((part) => part.type)).toEqual([
      'step-start',
      'tool-look',
      type,
      'step-start',
      'text',
    ])
  }
})

it('the end of the run is the end of the message', async () => {
  const end = async (turns: Turn[], options: StageOptions, protocol: Protocol): Promise<UIMessageChunk[]> =>
    (await seen(turns, options, protocol)).chunks.slice(-2)
  const limited: StageOptions = { tools: [tool('look')], limits: { maxSteps: 1 } }
  expect(await end([call('look')], limited, 'v7')).toEqual([
    {
      type: 'data-statewright',
      id: 'run_ended',
      data: expect.objectContaining({ type: 'run_ended', state: 'MAX_STEPS' }),
    },
    { type: 'finish', finishReason: 'interrupted' },
  ])
  expect((await end([call('look')], limited, 'v6')).at(-1)).toEqual({ type: 'finish', finishReason: 'other' })
  expect((await end([{ status: 400 }], {}, 'v7')).at(-1)).toMatchObject({ type: 'error' })
  expect((await end([done], {}, 'v7')).at(-1)).toEqual({ type: 'finish', finishReason: 'stop' })
  const theatre = await stage([text('Never', { hang: 1 })])
  const { run } = theatre.run()
  const response = toUIMessageStreamResponse(run, { protocol: own })
  await theatre.arrival()
  run.cancel()
  expect((await chunksOf(response)).at(-1)).toMatchObject({ type: 'abort' })
})

it('progress, usage and notes are sent, and progress is transient', async () => {
  const busy = tool('look', (_input, { progress }) => {
    progress('half')
    return 'seen'
  })
  const { chunks } = await seen([call('look'), { status: 503 }, done], { tools: [busy] })
  expect(chunks).toContainEqual({
    type: 'data-progress',
    transient: true,
    data: { callId: 'call_1_1', name: 'look', progress: 'half' },
  })
  expect(chunks).toContainEqual(
    expect.objectContaining({
      type: 'data-statewright',
      transient: true,
      data: expect.objectContaining({ type: 'retry' }),
    }),
  )
  const message = await messageOf(chunks as never)
  expect(message?.metadata).toMatchObject({ usage: { totalTokens: expect.any(Number) } })
  expect(message?.parts.map(({ type }) => type)).not.toContain('data-progress')
})

it('a run continues without readers, and a stream that is read late is complete', async () => {
  const theatre = await stage([text('One two three.')])
  const { run } = theatre.run()
  const stream = toUIMessageStream(run)
  const { messages } = await run.result
  await until(() => run.state === 'COMPLETED')
  const chunks: UIMessageChunk[] = []
  for await (const chunk of stream) chunks.push(chunk)
  expect(partsOf(await messageOf(chunks as never))).toEqual(partsOf(toUIMessages(messages)[1]))
})

it('addresses that run code do not become links', () => {
  const bad = { type: 'url_citation', url_citation: { url: 'javascript:alert(1)' } } as const
  const media = [{ type: 'image_url', image_url: { url: 'javascript:alert(1)' } }] as const
  const shown = toUIMessages([
    { role: 'user', id: 'm1', createdAt: 0, content: 'Hi.' },
    { role: 'assistant', id: 'm2', createdAt: 0, content: 'See.', annotations: [bad], media: [...media] },
  ])
  expect(JSON.stringify(shown)).not.toContain('javascript')
})
