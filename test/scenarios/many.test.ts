import { jest } from '@jest/globals'
import { defineShield } from '../../src/index.js'
import { stage } from '../support/play.js'
import { calls, text, times, tool } from '../support/tools.js'

/** The most listeners that any one signal has had at a time: Node warns of more than ten as of a leak. */
function watchSignals(): { most: () => number } {
  const counts = new Map<EventTarget, number>()
  let most = 0
  const { addEventListener: add, removeEventListener: remove } = EventTarget.prototype
  jest.spyOn(EventTarget.prototype, 'addEventListener').mockImplementation(function (
    this: EventTarget,
    ...args
  ) {
    if (this instanceof AbortSignal && args[0] === 'abort') {
      const count = (counts.get(this) ?? 0) + 1
      counts.set(this, count)
      most = Math.max(most, count)
    }
    add.apply(this, args)
  })
  jest.spyOn(EventTarget.prototype, 'removeEventListener').mockImplementation(function (
    this: EventTarget,
    ...args
  ) {
    if (this instanceof AbortSignal && args[0] === 'abort') counts.set(this, (counts.get(this) ?? 1) - 1)
    remove.apply(this, args)
  })
  return { most: () => most }
}

afterEach(() => {
  jest.restoreAllMocks()
})

describe('listeners on one signal', () => {
  test('are few, however many calls the shields look at', async () => {
    const signals = watchSignals()
    const mild = (name: string) => defineShield({ name, check: async () => ({ action: 'allow' }) })
    const shields = [mild('one'), mild('other')]
    const theatre = await stage([calls(times(40, ['look', {}])), text('Done.')], {
      tools: [tool('look')],
      shields: { input: shields, toolInput: shields, toolOutput: shields, output: shields },
    })
    expect((await theatre.run().end(2)).state).toBe('COMPLETED')
    expect(signals.most()).toBeLessThanOrEqual(3)
  })

  test('are few, however many runs have it; an abort reaches each of them, and no later one is kept', async () => {
    const signals = watchSignals()
    const theatre = await stage([text('Done.')], {}, 'repeatLast')
    const controller = new AbortController()
    const { signal } = controller
    await Promise.all(times(50, null).map(() => theatre.run('Go.', { signal }).run.result))
    const hanging = await stage([{ hang: true }], {}, 'repeatLast')
    const plays = times(50, null).map(() => hanging.run('Go.', { signal }))
    await hanging.arrival(50)
    controller.abort(new Error('Enough.'))
    const results = await Promise.all(plays.map(({ run }) => run.result))
    expect(results.every(({ state }) => state === 'CANCELLED')).toBe(true)
    expect((await theatre.run('Go.', { signal }).run.result).state).toBe('CANCELLED')
    expect(signals.most()).toBeLessThanOrEqual(3)
  })
})
