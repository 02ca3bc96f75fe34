import { initialTransition, transition } from 'xstate'
import type { ControlEvent } from '../../machines/agent/context.js'
import { agentMachine } from '../../machines/agent.machine.js'
import { createInput } from '../../src/core/agent/machine-input.js'
import { RunMailbox } from '../../src/core/run/run-mailbox.js'
import { RestPromise } from '../../src/core/run/run-parts.js'

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
  test('processes each waiting event once if the machine has processed none', () => {
    let [now] = initialTransition(agentMachine, createInput('Go.'))
    const mailbox = new RunMailbox()
    mailbox.open({ getSnapshot: () => now, send: () => undefined } as never, undefined)
    let count = 0
    const listSteering = (before?: ControlEvent) => mailbox.forecast(0, before)?.context.steering ?? []
    for (let n = 1; n <= 300; n++) {
      const steer: ControlEvent = {
        type: 'STEER',
        // Read by each transition.
        get text() {
          count += 1
          return `Page ${n}.`
        },
      }
      mailbox.post(steer)
      expect(listSteering()).toHaveLength(n)
    }
    expect(count).toBe(300)
    expect(listSteering(mailbox.events[7])).toHaveLength(7)
    expect(listSteering()).toHaveLength(300)
    // The machine has processed two events, so the others are evaluated again in the new state.
    for (const event of mailbox.events.slice(0, 2)) {
      mailbox.take(event)
      now = transition(agentMachine, now, { now: 0, ...event })[0]
    }
    expect(mailbox.events).toHaveLength(298)
    expect(listSteering().at(-1)).toBe('Page 300.')
    for (const event of mailbox.events) mailbox.take(event)
    expect(mailbox.forecast(0)).toBe(now)
  })
})
