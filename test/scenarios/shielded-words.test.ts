import { z } from 'zod'
import { type AgentOptions, defineShield, patternShield } from '../../src/index.js'
import type { Turn } from '../../src/rehearsal/index.js'
import { memoryStore } from '../../src/core/sessions/store/memory-store.js'
import { placesOf } from '../support/places.js'
import { type Play, type Stage, stage } from '../support/play.js'
import { call, text, tool } from '../support/tools.js'
import { sampledRows } from '../support/extent.js'

const secret = 'falcon-4711'

const block = patternShield({ name: 'block', patterns: [/falcon-?\d+/], action: 'block' })
const redact = patternShield({ name: 'redact', patterns: [/falcon-?\d+/g], action: 'redact' })
const base64 = (words: string) => Buffer.from(words).toString('base64')

async function leaks({ agent, requests }: Stage, { events, run }: Play, words = secret): Promise<string[]> {
  const { messages, run: last } = await agent.replay('s')
  return placesOf(words, { events, result: await run.result, messages, last, requests })
}

function createScene(turns: Turn[], options: Partial<AgentOptions>): Promise<Stage> {
  return stage(turns, { store: memoryStore(), ...options })
}

describe('a user message', () => {
  test.each([
    ['refused', block, 'BLOCKED', '[Withheld: a shield refused this message.]'],
    ['redacted', redact, 'COMPLETED', 'It is [redacted pattern 1].'],
  ])('is emitted as the shields return it: %s', async (_, shield, state, content) => {
    const play = await createScene([text('Done.')], { shields: { input: [shield] } })
    const run = play.run(`It is ${secret}.`, { session: 's' })
    expect((await run.run.result).state).toBe(state)
    expect(run.of('user_message').map(({ message }) => message.content)).toEqual([content])
    expect(await leaks(play, run)).toEqual([])
  })

  test('is withheld if the run is cancelled before a shield has answered', async () => {
    const hangs = defineShield({ name: 'hangs', check: () => new Promise(() => undefined) })
    const play = await createScene([text('Never.')], { shields: { input: [hangs] } })
    const run = play.run(`It is ${secret}.`, { session: 's' })
    await run.event('step_started')
    run.run.cancel()
    await run.run.result
    expect(await leaks(play, run)).toEqual([])
    expect(run.of('user_message')).toMatchObject([{ message: { data: { withheld: true } } }])
    expect((await play.agent.replay('s')).messages).toHaveLength(1)
  })

  test('that steers is not shown while the run is paused before the check', async () => {
    const play = await createScene([call('wait'), text('Done.')], {
      shields: { input: [redact] },
      tools: [
        tool('wait', () => {
          run.run.steer(`Mind ${secret}.`)
          run.run.pause()
        }),
      ],
    })
    const run = play.run('Go.', { session: 's' })
    expect((await run.run.result).state).toBe('PAUSED')
    expect(await leaks(play, run)).toEqual([])
    run.run.resume()
    const { messages } = await run.end(2)
    expect(messages.map(({ content }) => content)).toContain('Mind [redacted pattern 1].')
    expect(await leaks(play, run)).toEqual([])
  })

  test('that steers an ending run is not repeated in the warning', async () => {
    const play = await createScene([call('wait')], {
      shields: { input: [redact] },
      limits: { maxSteps: 1 },
      tools: [
        tool('wait', () => {
          run.run.steer(`Mind ${secret}.`)
          run.run.cancel()
        }),
      ],
    })
    const run = play.run('Go.', { session: 's' })
    await run.run.result
    expect(run.of('warning')).toMatchObject([{ code: 'steering_not_delivered' }])
    expect(await leaks(play, run)).toEqual([])
  })

  test('that steers is not in the last request at the step cap before the check', async () => {
    const play = await createScene([call('wait'), text('Done.')], {
      shields: { input: [redact] },
      limits: { maxSteps: 1, onLimit: 'conclude' },
      tools: [tool('wait', () => run.run.steer(`Mind ${secret}.`))],
    })
    const run = play.run('Go.', { session: 's' })
    expect(await run.end(2)).toMatchObject({ state: 'MAX_STEPS', output: 'Done.' })
    expect(await leaks(play, run)).toEqual([])
    expect(run.of('warning')).toMatchObject([{ code: 'steering_not_delivered' }])
  })

  const image = { type: 'image_url' as const, image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } }

  test.each([
    ['without a separator', ['It is falcon-', '4711.']],
    ['on two lines', ['It is falcon', '-4711.', '']],
  ])('in parts is checked as a whole: %s', async (_, parts) => {
    const lines = patternShield({ name: 'lines', patterns: [/falcon\n?-4711/], action: 'block' })
    const content = parts.map((words) => ({ type: 'text' as const, text: words }))
    const play = await createScene([text('Never.')], { shields: { input: [lines] } })
    const run = play.run([{ content: [...content, image] }], { session: 's' })
    expect((await run.run.result).state).toBe('BLOCKED')
    expect(await leaks(play, run, '4711')).toEqual([])
  })

  test('in parts is redacted across them', async () => {
    const play = await createScene([text('Done.')], { shields: { input: [redact] } })
    const content = [
      { type: 'text' as const, text: 'It is falcon-' },
      image,
      { type: 'text' as const, text: '4711.' },
    ]
    const run = play.run([{ content }], { session: 's' })
    const { messages } = await run.end(1)
    expect(messages[0]?.content).toEqual([{ type: 'text', text: 'It is [redacted pattern 1].' }, image])
    expect(await leaks(play, run, '4711')).toEqual([])
  })

  test.each([
    ['a name', { filename: `${secret}.pdf`, file_data: 'data:application/pdf;base64,JVBERi0xLjcKJeLjz9MK' }],
    ['an id', { file_id: secret }],
    ['a text', { filename: 'a.txt', file_data: `data:text/plain;base64,${base64(`It is ${secret}.`)}` }],
    ['a text without a type', { filename: 'a', file_data: base64(`Ümlaut, and ${secret}. `) }],
    ['a text that is not encoded', { filename: 'a', file_data: `data:,It%20is%20${secret}` }],
  ])('in a file is checked: %s', async (_, file) => {
    const play = await createScene([text('Never.')], { shields: { input: [block] } })
    const run = play.run([{ content: [{ type: 'file', file }] }], { session: 's' })
    expect((await run.run.result).state).toBe('BLOCKED')
    expect(await leaks(play, run)).toEqual([])
    expect(await leaks(play, run, base64(secret).slice(0, 8))).toEqual([])
  })

  test('in a file that is redacted becomes text; a picture stays unchanged', async () => {
    const play = await createScene([text('Done.')], { shields: { input: [redact] } })
    const file = { filename: 'a.txt', file_data: `data:text/plain;base64,${base64(`It is ${secret}.`)}` }
    const address = { type: 'image_url' as const, image_url: { url: `https://a.example/${secret}.png` } }
    const run = play.run([{ content: [{ type: 'file', file }, image, address] }], { session: 's' })
    const { messages } = await run.end(1)
    expect(messages[0]?.content).toEqual([
      { type: 'text', text: 'a.txt\nIt is [redacted pattern 1].' },
      image,
      { type: 'text', text: 'https://a.example/[redacted pattern 1].png' },
    ])
    expect(await leaks(play, run)).toEqual([])
  })
})

describe.each(sampledRows([true, false]))('reasoning, streamed: %p', (stream) => {
  const cases: [beside: string, turn: Turn][] = [
    ['a call', call('note', {}, { reasoning: `I know ${secret}.` })],
    ['words', text('Well.', { reasoning: `I know ${secret}.` })],
    ['words and a call', call('note', {}, { reasoning: `I know ${secret}.`, text: 'Well.' })],
  ]

  test.each(
    cases.flatMap(([beside, turn]) => [[beside, turn, block] as const, [beside, turn, redact] as const]),
  )('next to %s is emitted as the shields return it, and the run continues', async (_, turn, shield) => {
    const play = await createScene([turn, text('Done.')], {
      shields: { output: [shield] },
      tools: [tool('note')],
      stream,
    })
    const run = play.run('Go.', { session: 's' })
    const { messages, state } = await run.run.result
    expect(state).toBe('COMPLETED')
    expect(await leaks(play, run)).toEqual([])
    const [answer] = messages.filter(({ role }) => role === 'assistant')
    expect(answer).toMatchObject({
      reasoning:
        shield === block ? '[Withheld: a shield refused this reasoning.]' : 'I know [redacted pattern 1].',
    })
    expect(run.of('shield')).toMatchObject([{ point: 'output', action: 'redact' }])
  })

  test('that is cleared is stored', async () => {
    const play = await createScene([text('Done.', { reasoning: 'Two and two.' })], {
      shields: { output: [block] },
      stream,
    })
    const { messages } = await play.run('Go.', { session: 's' }).end(1)
    expect(messages.at(-1)).toMatchObject({ content: 'Done.', reasoning: 'Two and two.' })
  })
})

describe('an answer that does not match the output schema', () => {
  const output = z.strictObject({ done: z.boolean() })
  const wrong = JSON.stringify({ done: true, [secret]: 1 })

  test('is not quoted in the problem if it was redacted', async () => {
    const play = await createScene([text(wrong)], {
      output,
      shields: { output: [redact] },
      completion: { maxOutputRepairs: 0 },
    })
    const run = play.run('Go.', { session: 's' })
    const result = await run.end(1)
    expect(result).toMatchObject({ state: 'ERROR', reason: 'invalid_output' })
    expect(result.outputProblem).toContain('[redacted pattern 1]')
    expect(await leaks(play, run)).toEqual([])
  })

  test('is not quoted in the problem if it was refused, or never cleared', async () => {
    for (const isCancelled of [false, true]) {
      const stops = defineShield({
        name: 'stops',
        check: () => {
          run.run.cancel()
          return new Promise(() => undefined)
        },
      })
      const play = await createScene([text(wrong)], {
        output,
        shields: { output: [isCancelled ? stops : block] },
      })
      const run = play.run('Go.', { session: 's' })
      const result = await run.end(1)
      expect(result).toMatchObject({ state: isCancelled ? 'CANCELLED' : 'BLOCKED' })
      expect(result.outputProblem).toContain('without an answer')
      expect(await leaks(play, run)).toEqual([])
    }
  })

  test('is requested again with its problem if it was cleared', async () => {
    const play = await createScene([text(wrong), text('{"done":true}')], {
      output,
      shields: { output: [patternShield({ patterns: [/never/], action: 'block' })] },
    })
    const result = await play.run('Go.', { session: 's' }).end(2)
    expect(result).toMatchObject({ state: 'COMPLETED', object: { done: true } })
    expect(JSON.stringify(play.wire(-1))).toContain('Unrecognized key')
  })
})

describe('with shields for tool results', () => {
  test('no progress of a tool is emitted', async () => {
    const play = await createScene([call('count'), text('Done.')], {
      shields: { toolOutput: [block] },
      tools: [
        tool('count', (_input, { progress }) => {
          progress({ found: secret })
          return 'Two.'
        }),
      ],
    })
    const run = play.run('Go.', { session: 's' })
    await run.end(2)
    expect(await leaks(play, run)).toEqual([])
    expect(run.of('tool_progress')).toEqual([])
  })

  test('a sub-agent’s text is not emitted before the check', async () => {
    const child = await stage(
      [
        call('look', { at: secret }, { text: `Looking at ${secret}.`, reasoning: secret }),
        text(`It is ${secret}.`),
      ],
      { tools: [tool('look', () => secret)] },
    )
    const play = await createScene([call('ask', { task: 'Find it.' }), text('Done.')], {
      shields: { toolOutput: [redact] },
      tools: [child.agent.asTool({ name: 'ask', description: 'Asks.', maxSteps: 3 })],
    })
    const run = play.run('Go.', { session: 's' })
    await run.end(2)
    expect(await leaks(play, run)).toEqual([])
    expect(run.of('tool_result')).toMatchObject([{ content: 'It is [redacted pattern 1].' }])
    const events = run.of('child_event').map(({ event }) => event.type)
    expect([...new Set(events)]).toEqual(['run_started', 'state_changed', 'usage', 'run_ended'])
  })

  test('the end of a sub-agent that cannot continue is reported without its text', async () => {
    const child = await stage([
      { status: 429, error: { message: `No quota for ${secret}.`, code: 'insufficient_quota' } },
    ])
    const play = await createScene([call('ask', { task: 'Find it.' })], {
      shields: { toolOutput: [redact] },
      tools: [child.agent.asTool({ name: 'ask', description: 'Asks.', maxSteps: 3 })],
    })
    const run = play.run('Go.', { session: 's' })
    expect(await run.end(1)).toMatchObject({ reason: 'terminal_delegation' })
    expect(await leaks(play, run)).toEqual([])
  })
})
