import { patternShield, presets } from '../../src/index.js'
import type { Turn } from '../../src/rehearsal/index.js'
import { type Play, stage } from '../support/play.js'
import { call, text, times, tool } from '../support/tools.js'

/** A model that says the same for ever, until something stops it. */
async function stubborn(turn: Turn, preset: keyof typeof presets, limits: { tokenBudget?: number } = {}) {
  const look = tool('look', () => 'same', { readOnly: true })
  const theatre = await stage([turn], { ...presets[preset], tools: [look] }, 'loop')
  const play: Play = theatre.run('Go.', { limits })
  const { state, reason, steps } = await play.run.result
  if (state !== 'PAUSED') await play.end(theatre.requests.length)
  return { state, reason, steps, calls: theatre.requests.length, executed: look.inputs.length }
}

describe('a model that repeats one call', () => {
  const again = call('look', { at: 'a' }, { usage: { input: 90, output: 10 } })

  it('is stopped by aar before the fourth executes', async () => {
    expect(await stubborn(again, 'aar')).toEqual({
      state: 'ERROR',
      reason: 'repeated_call',
      steps: 4,
      calls: 4,
      executed: 3,
    })
  })

  it.each(['openhuman', 'openhumanTask'] as const)(
    'is paused by %s right after the third',
    async (preset) => {
      expect(await stubborn(again, preset)).toEqual({
        state: 'PAUSED',
        reason: 'repeated_call',
        steps: 3,
        calls: 3,
        executed: 3,
      })
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

  it('is stopped by strands at the limit of the invocation, its batch completed', async () => {
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
  it('aar counts repeated calls whatever they bring, and accepts a missing end', async () => {
    let n = 0
    const look = tool('look', () => `line ${++n}`)
    const theatre = await stage(times(4, call('look')), { ...presets.aar, tools: [look] })
    expect(await theatre.run().end(4)).toMatchObject({ state: 'ERROR', reason: 'repeated_call' })
    const open = await stage([text('All of it.', { endWithout: 'both' })], presets.aar)
    expect(await open.run().end(1)).toMatchObject({ state: 'COMPLETED', output: 'All of it.' })
  })

  it('openhuman is paused by the same output for different arguments, and goes on when resumed', async () => {
    const turns = [1, 2, 3, 4].map((n) => call('write', { n }))
    const theatre = await stage([...turns, text('Done.')], { ...presets.openhuman, tools: [tool('write')] })
    const play = theatre.run()
    expect(await play.rest()).toMatchObject({ state: 'PAUSED', reason: 'repeated_output' })
    play.run.resume()
    expect((await play.end(5)).output).toBe('Done.')
  })

  it('openhumanTask lifts the cap of ten to two hundred', async () => {
    const turns = Array.from({ length: 12 }, (_, n) => call('work', { n }))
    const tools = [tool('work', ({ n }) => `did ${n}`)]
    const task = await stage([...turns, text('Done.')], { ...presets.openhumanTask, tools })
    expect((await task.run().end(13)).state).toBe('COMPLETED')
    const chat = await stage(turns.slice(0, 10), { ...presets.openhuman, tools })
    expect((await chat.run().end(10)).state).toBe('MAX_STEPS')
  })

  it('llamaStack takes a truncated answer as it is', async () => {
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

  it('strands lets a natural end win over its limit', async () => {
    const theatre = await stage([text('Done.', { usage: { input: 90, output: 10 } })], presets.strands)
    const result = await theatre.run('Go.', { limits: { tokenBudget: 50 } }).end(1)
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
  })
})
