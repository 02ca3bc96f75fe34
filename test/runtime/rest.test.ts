import { EventForecast, RestPromise } from '../../src/core/run/run-parts.js'

describe('a rest', () => {
  test('creates its result on demand, not for each of a thousand answers', async () => {
    const rest = new RestPromise<number>()
    let count = 0
    const first = rest.promise
    for (let answer = 1; answer <= 1_000; answer++) {
      rest.leave()
      rest.reach(() => {
        count += 1
        return answer
      })
    }
    expect(await first).toBe(1)
    expect(count).toBe(1)
    expect(await rest.promise).toBe(1_000)
    expect(rest.promise).toBe(rest.promise)
    expect(count).toBe(2)
  })

  test('that is reached again without an exit has a new result', async () => {
    const rest = new RestPromise<string>()
    const before = rest.promise
    rest.reach(() => 'two wait')
    rest.reach(() => 'one waits')
    expect(await before).toBe('two wait')
    expect(await rest.promise).toBe('one waits')
    rest.leave()
    const next = rest.promise
    rest.leave()
    expect(rest.promise).toBe(next)
    rest.reach(() => 'none')
    expect(await next).toBe('none')
  })

  test('that is refused rejects for every waiting caller, before or after', async () => {
    const rest = new RestPromise<string>()
    const before = rest.promise
    rest.refuse(new Error('busy'))
    await expect(before).rejects.toThrow('busy')
    await expect(rest.promise).rejects.toThrow('busy')
    const unasked = new RestPromise<string>()
    unasked.refuse(new Error('busy'))
    await expect(unasked.promise).rejects.toThrow('busy')
    expect(unasked.isReached).toBe(true)
  })
})

describe('speculative evaluation', () => {
  test('processes each waiting event once if no event has been emitted', () => {
    const foresight = new EventForecast<readonly number[], { n: number }>()
    let count = 0
    const take = (state: readonly number[], { n }: { n: number }): readonly number[] => {
      count += 1
      return [...state, n]
    }
    const start: readonly number[] = [0]
    const waiting: { n: number }[] = []
    for (let n = 1; n <= 1_000; n++) {
      waiting.push({ n })
      expect(foresight.apply(start, waiting, take)).toHaveLength(n + 1)
    }
    expect(count).toBe(1_000)
    // Some events were emitted, so the others are evaluated again in the new state.
    expect(foresight.apply([0, 1, 2], waiting.slice(2), take).at(-1)).toBe(1_000)
    expect(foresight.apply(start, [{ n: 7 }], take)).toEqual([0, 7])
    expect(foresight.apply(start, [], take)).toBe(start)
  })
})
