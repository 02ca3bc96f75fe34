import type { AgentConfigInput, AgentOptions } from '../../src/index.js'
import type { Turn } from '../../src/rehearsal/index.js'
import * as theatre from '../support/play.js'
import { call, calls, text, times, tool } from '../support/tools.js'

const same = () => tool('look', () => 'same', { readOnly: true })
const done = text('Done.')

/** These guards count the listed names. The default policy has other settings. */
const classic = { repeatedCall: {}, repeatedOutput: {}, cycle: {}, failing: {} }
const withClassic = (options: Partial<AgentOptions> = {}) => ({
  ...options,
  guardrails: { ...classic, ...options.guardrails },
})
const played = (turns: Turn[], options?: Partial<AgentOptions>) => theatre.played(turns, withClassic(options))
const stage = (turns: Turn[], options?: Partial<AgentOptions>) => theatre.stage(turns, withClassic(options))
const guardrails = (input: AgentConfigInput['guardrails']) => ({ guardrails: input })

/** Calls whose results add nothing new, one batch per turn, then an answer. */
async function completes(turns: Turn[], tools = [same()]): Promise<void> {
  const { result } = await played([...turns, done], { tools })
  expect(result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
}

describe('the same call over and over', () => {
  it('is nudged after the third and stopped before the fourth executes', async () => {
    const look = same()
    const { result, stage, of } = await played(times(4, call('look', { at: 'a' })), { tools: [look] })
    expect(result).toMatchObject({ state: 'ERROR', reason: 'repeated_call', steps: 4 })
    expect(look.inputs).toHaveLength(3)
    expect(result.error?.message).toMatch(/look.*3 times.*guardrails\.maxRepeatedToolSteps \(now 3\)/)
    expect(result.messages.at(-1)).toMatchObject({ role: 'tool', data: { status: 'not_executed' } })
    expect(of('guardrail').map(({ action }) => action)).toEqual(['nudge', 'halt'])
    expect(of('guardrail')[1]?.evidence).toContain('look({"at":"a"})')
    expect(stage.wire(3).at(-1)?.content).toMatch(/called look.*3 times/)
    expect(stage.wire(2).at(-1)?.role).toBe('tool')
  })

  it('is nudged in one request, and the nudge is never stored', async () => {
    const turns = [...times(3, call('look')), call('look', { n: 2 }), done]
    const { result, stage } = await played(turns, { tools: [tool('look', ({ n }) => `same ${n}`)] })
    expect(stage.requests.map((_, i) => stage.wire(i).at(-1)?.role)).toEqual([
      'user',
      'tool',
      'tool',
      'user',
      'tool',
    ])
    expect(JSON.stringify(result.messages)).not.toContain('3 times')
    expect(JSON.stringify(stage.wire(4))).not.toContain('3 times')
  })

  it('is not nudged again after a truncated answer', async () => {
    const cut = text('So', { finishReason: 'length' })
    const { stage } = await played([...times(3, call('look')), cut, done], { tools: [same()] })
    expect(stage.requests.map((_, i) => JSON.stringify(stage.wire(i)).includes('3 times'))).toEqual([
      false,
      false,
      false,
      true,
      false,
    ])
  })

  it('can be allowed more often, halted right after the last, or ignored', async () => {
    const loose = await played([...times(5, call('look')), done], {
      tools: [tool('look')],
      guardrails: { maxRepeatedToolSteps: 6, repeatedOutput: null },
    })
    expect(loose.result.state).toBe('COMPLETED')
    const reached = await played(times(3, call('look')), {
      tools: [same()],
      ...guardrails({ repeatedCall: { haltAt: 'reached' } }),
    })
    expect(reached.result).toMatchObject({ state: 'ERROR', reason: 'repeated_call', steps: 3 })
    const off = await played([...times(9, call('look')), done], {
      tools: [tool('look')],
      guardrails: { repeatedCall: null, repeatedOutput: null },
    })
    expect(off.result.state).toBe('COMPLETED')
  })

  it('is recognized with any order of keys and calls', async () => {
    const inputs = [
      { a: { b: 1, c: [2] }, d: 'x' },
      { d: 'x', a: { c: [2], b: 1 } },
      '{ "d":"\\u0078", "a":{"b":1.0,"c":[2]} }',
      { a: { b: 1, c: [2] }, d: 'x' },
    ]
    const keys = await played(
      inputs.map((input) => call('look', input)),
      { tools: [same()] },
    )
    expect(keys.result.reason).toBe('repeated_call')
    const orders = [1, 2, 1, 2].map((first) =>
      calls([
        ['look', { n: first }],
        ['look', { n: 3 - first }],
      ]),
    )
    const batches = await played(orders, { tools: [same()] })
    expect(batches.result.reason).toBe('repeated_call')
  })

  it('is refused once with onRepeat block, and halts when it is requested again', async () => {
    const look = same()
    const options = {
      tools: [look],
      ...guardrails({ repeatedCall: { onRepeat: 'block' as const }, repeatedOutput: null }),
    }
    const heeded = await played([...times(4, call('look')), done], options)
    expect(heeded.result.state).toBe('COMPLETED')
    expect(look.inputs).toHaveLength(3)
    expect(heeded.of('tool_result').at(-1)).toMatchObject({ status: 'blocked' })
    expect(heeded.stage.wire(4).at(-1)?.content).toMatch(/Not executed.*the run stops/s)
    const ignored = await played(times(5, call('look')), options)
    expect(ignored.result).toMatchObject({ state: 'ERROR', reason: 'repeated_call' })
  })

  it('pauses with onHalt pause, and a resume resets that guard', async () => {
    const opened = await stage([...times(4, call('look')), call('look'), done], {
      tools: [same()],
      ...guardrails({ repeatedCall: { onHalt: 'pause' }, repeatedOutput: null }),
    })
    const play = opened.run()
    const halted = await play.rest()
    expect(halted).toMatchObject({ state: 'PAUSED', reason: 'repeated_call' })
    expect(halted.error).toMatchObject({ code: 'repeated_call', recoverable: true })
    play.run.resume()
    expect(await play.end(6)).toMatchObject({ state: 'COMPLETED', output: 'Done.', steps: 6 })
  })

  it('does not affect a new message on the session', async () => {
    const opened = await stage([...times(4, call('look')), call('look'), done], { tools: [same()] })
    expect((await opened.run('Go.', { session: 's' }).end(4)).reason).toBe('repeated_call')
    expect((await opened.run('Again.', { session: 's' }).end(6)).state).toBe('COMPLETED')
  })
})

describe('no repetition', () => {
  it('is six calls with different arguments', async () => {
    const look = tool('look', ({ n }) => `page ${n}`)
    await completes(
      [1, 2, 3, 4, 5, 6].map((n) => call('look', { n })),
      [look],
    )
  })

  it('is 1 and "1"', async () => {
    await completes(
      [1, '1', 1, '1', 1].map((n) => call('look', { n })),
      [tool('look')],
    )
  })

  it('is two long values that differ at character 250 of 300', async () => {
    const turns = ['a', 'b', 'c', 'd', 'e', 'f'].map((letter) =>
      call('look', { value: 'x'.repeat(249) + letter + 'x'.repeat(50) }),
    )
    await completes(turns, [tool('look')])
  })

  it('is reading with a new result each time', async () => {
    let n = 0
    await completes(times(8, call('look')), [tool('look', () => `line ${++n}`, { readOnly: true })])
  })

  it('is a status requested once per message, five messages long', async () => {
    const turns = times(5, [call('look'), done]).flat()
    const opened = await stage(turns, { tools: [same()] })
    for (const n of [1, 2, 3, 4, 5]) {
      expect((await opened.run('Status?', { session: 's' }).end(2 * n)).state).toBe('COMPLETED')
    }
  })

  it('is ten calls of a polling tool', async () => {
    await completes(times(10, call('poll')), [tool('poll', () => 'not yet', { polling: true })])
  })

  it('excludes a poll next to another call, whose batch counts', async () => {
    const poll = tool('poll', () => 'not yet', { polling: true, readOnly: true })
    const { result } = await played(times(4, calls([['poll'], ['look']])), { tools: [poll, same()] })
    expect(result.reason).toBe('repeated_call')
  })

  it('is the same call after the model has written text', async () => {
    const { result } = await played(
      [...times(3, call('look')), { text: 'Hm', finishReason: 'length' }, ...times(3, call('look')), done],
      { tools: [tool('look')], ...guardrails({ repeatedOutput: null }) },
    )
    expect(result.state).toBe('COMPLETED')
  })
})

describe('the same results for any arguments', () => {
  it('halt after the fourth round if the tools only read', async () => {
    const look = same()
    const { result } = await played(
      [1, 2, 3, 4].map((n) => call('look', { n })),
      { tools: [look] },
    )
    expect(result).toMatchObject({ state: 'ERROR', reason: 'repeated_output' })
    expect(look.inputs).toHaveLength(4)
    expect(result.messages.at(-1)).toMatchObject({ role: 'tool', content: 'same' })
  })

  it('cause a nudge if a tool may change things, and halt with strict', async () => {
    const turns = [1, 2, 3, 4].map((n) => call('write', { n }))
    const { result, of } = await played([...turns, done], { tools: [tool('write')] })
    expect(result.state).toBe('COMPLETED')
    expect(of('guardrail')).toMatchObject([{ guard: 'repeated_output', action: 'nudge' }])
    const strict = await played(turns, {
      tools: [tool('write')],
      ...guardrails({ repeatedOutput: { strict: true } }),
    })
    expect(strict.result.reason).toBe('repeated_output')
  })
})

describe('a cycle', () => {
  const [a, b] = [call('look', { at: 'a' }), call('look', { at: 'b' })]

  it('of two calls with stable results is nudged after two periods and halts after three', async () => {
    const look = tool('look', ({ at }) => `saw ${at}`, { readOnly: true })
    const { result, of } = await played([a, b, a, b, a, b], { tools: [look] })
    expect(result).toMatchObject({ state: 'ERROR', reason: 'cycle', steps: 6 })
    expect(of('guardrail').map(({ guard, action }) => [guard, action])).toEqual([
      ['cycle', 'nudge'],
      ['cycle', 'halt'],
    ])
  })

  it('is broken by a changed result in between', async () => {
    let reads = 0
    const look = tool('look', ({ at }) => `saw ${at}${++reads > 3 ? ' again' : ''}`, {
      readOnly: true,
    })
    await completes([a, b, a, b, a, b], [look])
  })

  it('is broken by a successful call that changes something', async () => {
    const look = tool('look', ({ at }) => `saw ${at}`, { readOnly: true })
    const fix = call('fix')
    await completes([a, b, a, b, fix, a, b, a, b], [look, tool('fix')])
  })
})
