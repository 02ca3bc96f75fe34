import * as fc from 'fast-check'
import type { AgentEvent } from '../../src/index.js'
import { EventQueue } from '../../src/core/run/event-hub.js'
import { stage, tick } from '../support/play.js'
import { call, text, tool } from '../support/tools.js'

describe('the iterated events of a run', () => {
  it('reach any number of concurrent requests, and each request is answered', async () => {
    const play = (await stage([text('One two three.')])).run()
    const { run } = play
    const iterator = run[Symbol.asyncIterator]()
    const results = await Promise.all(Array.from({ length: 40 }, () => iterator.next()))
    const events = results.flatMap(({ value }) => (value ? [value as AgentEvent] : []))
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, i) => i + 1))
    expect(events.at(-1)?.type).toBe('run_ended')
    expect(results.slice(events.length).every(({ done }) => done === true)).toBe(true)
    await play.end(1)
  })

  it('end with return(), for waiting readers as well; nothing is delivered afterwards', async () => {
    const theatre = await stage([{ hang: true }])
    const play = theatre.run()
    const iterator = play.run[Symbol.asyncIterator]()
    await theatre.arrival()
    const pending = Array.from({ length: 20 }, () => iterator.next())
    expect(await iterator.return?.()).toEqual({ done: true, value: undefined })
    const results = await Promise.all(pending)
    expect(results.at(-1)).toEqual({ done: true, value: undefined })
    play.run.cancel()
    await play.end(1)
    expect(await iterator.next()).toEqual({ done: true, value: undefined })
  })

  it('end at a rest; later events belong to the next iteration', async () => {
    const play = (
      await stage([call('pay'), text('Done.')], {
        tools: [tool('pay', () => 'paid', { needsApproval: true })],
      })
    ).run()
    const first: AgentEvent[] = []
    for await (const event of play.run) first.push(event)
    expect(first.at(-1)?.type).toBe('approval_requested')
    const idle = play.run[Symbol.asyncIterator]()
    play.run.approve('call_1_1')
    const second: AgentEvent[] = []
    for await (const event of play.run) second.push(event)
    expect(second.at(-1)?.type).toBe('run_ended')
    await play.end(2)
    const left: AgentEvent[] = []
    for (let next = await idle.next(); !next.done; next = await idle.next()) left.push(next.value)
    expect(left.map(({ type }) => type)).toEqual(['state_changed', 'approval_requested'])
  })
})

test('a queue answers every request exactly once, in order', async () => {
  const moves = fc.array(fc.constantFrom('push', 'next', 'next', 'end', 'fail', 'return', 'tick'), {
    maxLength: 40,
  })
  await fc.assert(
    fc.asyncProperty(moves, async (script) => {
      let ends = 0
      let pushed = 0
      const queue = new EventQueue<number>(() => (ends += 1))
      const pending: Promise<unknown>[] = []
      const answers: unknown[] = []
      let isOver = false
      let isReturned = false
      let count = 0
      const expected = { values: 0 }
      for (const move of script) {
        if (move === 'push') {
          queue.push(pushed)
          if (!isOver) pushed += 1
        } else if (move === 'next') {
          const at = pending.length
          pending.push(
            queue.next().then(
              (result) => (answers[at] = result.done ? 'done' : result.value),
              () => (answers[at] = 'failed'),
            ),
          )
        } else if (move === 'tick') {
          await tick()
        } else {
          if (!isOver) expected.values = pushed
          if (move === 'return') {
            isReturned = true
            void queue.return()
          } else queue.end(move === 'fail' ? { error: new Error('It failed.') } : null)
          isOver = true
        }
      }
      queue.end()
      await Promise.all(pending)
      const values = answers.filter((answer) => typeof answer === 'number')
      count = values.length
      expect(values).toEqual(Array.from({ length: count }, (_, i) => i))
      expect(answers).toHaveLength(pending.length)
      expect(answers.filter((answer) => answer === 'failed').length).toBeLessThanOrEqual(1)
      // The values, then the failure, then the end.
      expect(answers.findLastIndex((answer) => typeof answer === 'number')).toBe(count - 1)
      if (!isReturned) expect(count).toBe(Math.min(pushed, pending.length))
      expect(ends).toBe(1)
    }),
  )
})
