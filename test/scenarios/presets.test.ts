import { patternShield, presets, ToolError } from '../../src/index.js'
import type { Turn } from '../../src/rehearsal/index.js'
import { type Play, stage } from '../support/play.js'
import { call, text, times, tool } from '../support/tools.js'

/** A model that repeats the same answer until it is stopped. */
async function stubborn(turn: Turn, preset: keyof typeof presets, limits: { tokenBudget?: number } = {}) {
  const look = tool('look', () => 'same', { readOnly: true })
  const theatre = await stage([turn], { ...presets[preset], tools: [look] }, 'loop')
  const play: Play = theatre.run('Go.', { limits })
  const { state, reason, steps } = await play.run.result
  if (state !== 'PAUSED') await play.end(theatre.requests.length)
  return { state, reason, steps, calls: theatre.requests.length, executed: look.inputs.length }
}

const again = call('look', { at: 'a' }, { usage: { input: 90, output: 10 } })

describe('a model that repeats one call', () => {
  it('is stopped by aar before the fourth call executes', async () => {
    expect(await stubborn(again, 'aar')).toEqual({
      state: 'ERROR',
      reason: 'repeated_call',
      steps: 4,
      calls: 4,
      executed: 3,
    })
  })

  it.each(['openhuman', 'openhumanTask'] as const)(
    'is paused by %s right after the third call, for any results',
    async (preset) => {
      let n = 0
      const look = tool('look', () => `line ${++n}`)
      const theatre = await stage([...times(3, again), text('I read three lines.')], {
        ...presets[preset],
        tools: [look],
      })
      const result = await theatre.run().rest()
      expect(result).toMatchObject({ state: 'PAUSED', reason: 'repeated_call', steps: 4 })
      expect(result.output).toBe('I read three lines.')
      expect(look.inputs).toHaveLength(3)
    },
  )

  it('is stopped by llamaStack after its ten inferences', async () => {
    expect(await stubborn(again, 'llamaStack')).toEqual({
      state: 'MAX_STEPS',
      reason: 'max_steps',
      steps: 10,
      calls: 10,
      executed: 10,
    })
  })

  it('is stopped by strands at the limit of the invocation, after its batch', async () => {
    expect(await stubborn(again, 'strands', { tokenBudget: 1_500 })).toEqual({
      state: 'BUDGET_EXCEEDED',
      reason: 'token_budget',
      steps: 15,
      calls: 15,
      executed: 15,
    })
  })
})

describe('the preset', () => {
  it('is a key of createAgent that other keys override', async () => {
    const look = tool('look')
    const guardrails = { maxRepeatedToolSteps: 2 }
    const theatre = await stage(times(3, again), { preset: 'aar', guardrails, tools: [look] })
    expect(await theatre.run().end(3)).toMatchObject({ state: 'ERROR', reason: 'repeated_call' })
    expect(look.inputs).toHaveLength(2)
  })

  it('aar counts repeated calls for any results, and accepts a missing end', async () => {
    let n = 0
    const look = tool('look', () => `line ${++n}`)
    const theatre = await stage(times(4, call('look')), { ...presets.aar, tools: [look] })
    expect(await theatre.run().end(4)).toMatchObject({ state: 'ERROR', reason: 'repeated_call' })
    const open = await stage([text('All of it.', { endWithout: 'both' })], presets.aar)
    expect(await open.run().end(1)).toMatchObject({ state: 'COMPLETED', output: 'All of it.' })
  })

  it.each([
    ['at the end', 'repeated_call'],
    ['at the start', undefined],
  ])('aar compares the first 200 characters of each argument: %s', async (place, reason) => {
    const long = 'x'.repeat(200)
    const turns = [1, 2, 3, 4].map((n) =>
      call('write', { text: place === 'at the end' ? `${long}${n}` : `${n}${long}` }),
    )
    const theatre = await stage([...turns, text('Done.')], { ...presets.aar, tools: [tool('write')] })
    const result = await theatre.run().run.result
    expect(result.reason).toBe(reason ?? 'end_turn')
  })

  it('openhuman is paused by equal output of two alternating tools', async () => {
    const turns = [1, 2, 3, 4].map((n) => call(n % 2 ? 'look' : 'read', { n }))
    const tools = ['look', 'read'].map((name) => tool(name, () => 'nothing'))
    const theatre = await stage([...turns, text('Nothing.')], { ...presets.openhuman, tools })
    expect(await theatre.run().rest()).toMatchObject({ state: 'PAUSED', reason: 'repeated_output', steps: 5 })
  })

  it('openhumanTask is paused by the twelfth temporary failure, for which openhuman has no limit', async () => {
    const fetch = tool('fetch', ({ n }) => {
      throw new ToolError('transient', `It is down at ${n}.`)
    })
    const turns = Array.from({ length: 12 }, (_, n) => call('fetch', { n }))
    const task = await stage([...turns, text('It is down.')], { ...presets.openhumanTask, tools: [fetch] })
    expect(await task.run().rest()).toMatchObject({ state: 'PAUSED', reason: 'repeated_failure', steps: 13 })
    const chat = await stage(turns.slice(0, 10), { ...presets.openhuman, tools: [fetch] })
    expect(await chat.run().end(10)).toMatchObject({ state: 'MAX_STEPS', steps: 10 })
  })

  it('openhuman is paused by the same output for different arguments, and continues when resumed', async () => {
    const turns = [1, 2, 3, 4].map((n) => call('write', { n }))
    const theatre = await stage([...turns, text('Four are written.'), text('Done.')], {
      ...presets.openhuman,
      tools: [tool('write')],
    })
    const play = theatre.run()
    expect(await play.rest()).toMatchObject({ state: 'PAUSED', reason: 'repeated_output' })
    play.run.resume()
    expect((await play.end(6)).output).toBe('Done.')
  })

  const fails = (kind: 'failed' | 'transient') =>
    tool('fetch', () => {
      throw new ToolError(kind, 'It is down.')
    })

  it.each([
    ['repeated_call', tool('fetch'), 3, 'the same'],
    ['repeated_output', tool('fetch'), 4, 'other'],
    ['repeated_failure', fails('failed'), 3, 'the same'],
  ] as const)(
    'openhuman requests a final answer before each pause: %s',
    async (reason, fetch, rounds, kind) => {
      const turns = Array.from({ length: rounds }, (_, i) => call('fetch', kind === 'other' ? { n: i } : {}))
      const theatre = await stage([...turns, text('This is what I have.')], {
        ...presets.openhuman,
        tools: [fetch],
      })
      const result = await theatre.run().rest()
      expect(result).toMatchObject({ state: 'PAUSED', reason, output: 'This is what I have.' })
      expect(theatre.requests).toHaveLength(rounds + 1)
      expect(theatre.requests.at(-1)?.body['tools']).toBeUndefined()
      expect(theatre.wire(-1).at(-1)?.content).toMatch(/run stops here/)
    },
  )

  it('openhuman pauses without a final answer if its steps are used up, or if configured', async () => {
    const silent = { ...presets.openhuman.guardrails.repeatedCall, lastWords: false }
    for (const changes of [
      { limits: { maxSteps: 3 } },
      { guardrails: { ...presets.openhuman.guardrails, repeatedCall: silent } },
    ]) {
      const theatre = await stage(times(3, again), {
        ...presets.openhuman,
        ...changes,
        tools: [tool('look')],
      })
      expect(await theatre.run().rest()).toMatchObject({ reason: 'repeated_call', steps: 3, output: '' })
    }
  })

  it('openhuman counts failures of one call separately', async () => {
    const fetch = fails('transient')
    const theatre = await stage([...times(7, call('fetch')), text('It is down.')], {
      ...presets.openhuman,
      tools: [fetch],
    })
    expect(await theatre.run().end(8)).toMatchObject({ state: 'COMPLETED', output: 'It is down.' })
    expect(fetch.inputs).toHaveLength(7)
  })

  it.each([
    ['at once', []],
    ['after a failed call', [call('fetch')]],
  ])('aar completes with an empty answer, like its source (%s)', async (_, turns) => {
    const theatre = await stage([...turns, text('')], { ...presets.aar, tools: [fails('failed')] })
    const result = await theatre.run().end(turns.length + 1)
    expect(result).toMatchObject({ state: 'COMPLETED', reason: 'end_turn', output: '' })
  })

  it('openhumanTask lifts the cap of ten to two hundred', async () => {
    const turns = Array.from({ length: 12 }, (_, n) => call('work', { n }))
    const tools = [tool('work', ({ n }) => `did ${n}`)]
    const task = await stage([...turns, text('Done.')], { ...presets.openhumanTask, tools })
    expect((await task.run().end(13)).state).toBe('COMPLETED')
    const chat = await stage(turns.slice(0, 10), { ...presets.openhuman, tools })
    expect((await chat.run().end(10)).state).toBe('MAX_STEPS')
  })

  it('llamaStack accepts a truncated answer unchanged', async () => {
    const theatre = await stage([text('Half', { finishReason: 'length' })], presets.llamaStack)
    expect(await theatre.run().end(1)).toMatchObject({
      state: 'COMPLETED',
      reason: 'max_tokens',
      output: 'Half',
    })
  })

  it.each(['input', 'output'] as const)(
    'llamaStack ends a turn whose %s a shield blocks with the message of the violation',
    async (point) => {
      const message = 'Not here.'
      const shield = patternShield({ patterns: [/bomb/], action: 'block', message })
      const options = { ...presets.llamaStack, shields: { [point]: [shield] } }
      const theatre = await stage([text('A bomb is …')], options)
      const { state, messages } = await theatre.run('What is a bomb?').run.result
      expect([state, messages.at(-1)]).toMatchObject(['BLOCKED', { role: 'assistant', content: message }])
      expect(theatre.requests).toHaveLength(point === 'input' ? 0 : 1)
    },
  )

  it('strands completes with a natural end at its limit', async () => {
    const theatre = await stage([text('Done.', { usage: { input: 90, output: 10 } })], presets.strands)
    const result = await theatre.run('Go.', { limits: { tokenBudget: 50 } }).end(1)
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
  })
})
