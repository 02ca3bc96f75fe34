import { jest } from '@jest/globals'
import fc from 'fast-check'
import {
  runSession,
  type RunSessionOptions,
  type SessionResult,
  StoreError,
  UsageError,
} from '../../src/index.js'
import { findHistoryProblem } from '../support/history.js'
import { payments, SlowProcess } from '../support/slow-crew.js'
import { cases, delays, SlowPlace } from '../support/slow-place.js'

jest.setTimeout(cases.numRuns * 10_000)

/** The actions on a session that three processes share, with the milliseconds since the previous action. */
const deed = fc.record({
  gap: fc.nat(60),
  by: fc.nat(2),
  what: fc.oneof(
    { weight: 4, arbitrary: fc.record({ type: fc.constant('answer' as const) }) },
    {
      weight: 4,
      arbitrary: fc.record({
        type: fc.constant('drive' as const),
        stopAfter: fc.option(fc.nat(60), { nil: null }),
      }),
    },
    { weight: 2, arbitrary: fc.record({ type: fc.constant('resume' as const) }) },
    { weight: 1, arbitrary: fc.record({ type: fc.constant('steer' as const) }) },
    { weight: 1, arbitrary: fc.record({ type: fc.constant('fork' as const) }) },
    { weight: 1, arbitrary: fc.record({ type: fc.constant('kill' as const) }) },
  ),
})
type Deed = typeof deed extends fc.Arbitrary<infer Value> ? Value : never

/**
 * Possible refusals for a process that asks for a session, because another process has it or no work is left.
 */
const mayBeRefused = [
  'session_busy',
  'stopped',
  'run_ended',
  'nothing_to_resume',
  'unknown_session',
  'not_waiting',
  'unknown_call',
  'already_answered',
]

/** Another process took the session while this one was idle, and has it or has completed it. The run continued there. */
const takenOver: readonly unknown[] = ['session_busy', 'out_of_order']

class Story {
  readonly place: SlowPlace
  readonly paid: string[] = []
  readonly processes: SlowProcess[]
  readonly sessions = ['s']
  /** The steering texts of the session, and whether the session accepted each before its last payment. */
  readonly steered = new Map<string, boolean>()
  readonly wrong: string[] = []
  killed = 0

  constructor(ways: readonly number[]) {
    this.place = new SlowPlace(ways)
    this.processes = [this.enter(), this.enter(), this.enter()]
  }

  enter(): SlowProcess {
    return new SlowProcess(this.place, this.paid)
  }

  /** A process acts without waiting for the result. */
  begin({ by, what }: Deed): void {
    const { agent } = this.processes[by] as SlowProcess
    if (what.type === 'kill') this.#kill(by)
    else void this.#mayFail(what.type, this.#do(agent, what))
  }

  #kill(by: number): void {
    if (this.killed === 2) return
    this.killed += 1
    this.processes[by]?.kill()
    this.processes[by] = this.enter()
  }

  async #do(agent: SlowProcess['agent'], what: Exclude<Deed['what'], { type: 'kill' }>): Promise<void> {
    if (what.type === 'drive') {
      const stop = new AbortController()
      if (what.stopAfter !== null) void this.place.clock.setTimeout(() => stop.abort(), what.stopAfter)
      await runSession(agent, { session: 's', input: 'Go.', signal: stop.signal })
    } else if (what.type === 'resume') {
      const { state, error } = await (await agent.resume('s')).result
      if (state === 'ERROR' && !takenOver.includes(error?.code))
        this.wrong.push(`resume: ${error?.code} ${error?.message}`)
    } else if (what.type === 'fork') this.sessions.push(await agent.fork('s'))
    else if (what.type === 'steer') {
      const text = `Mind ${this.steered.size}.`
      this.steered.set(text, false)
      await agent.send('s', { type: 'steer', text })
      this.steered.set(text, !this.paid.includes('last'))
    } else {
      const { pending = [] } = (await agent.replay('s')).run ?? {}
      for (const { callId, fingerprint } of pending)
        await agent.send('s', { type: 'approve', callId, fingerprint })
    }
  }

  async #mayFail(what: string, work: Promise<void>): Promise<void> {
    try {
      await work
    } catch (error) {
      const isTyped = error instanceof StoreError || error instanceof UsageError
      if (!isTyped || !mayBeRefused.includes(error.code)) this.wrong.push(`${what}: ${String(error)}`)
    }
  }

  /** Drives a session to its end and approves every request. */
  async finish(session: string): Promise<SessionResult> {
    const { place } = this
    const { agent } = this.enter()
    let answers: NonNullable<RunSessionOptions['answers']> = []
    for (let i = 0; i < 40; i += 1) {
      try {
        const rest: SessionResult = await place.of(runSession(agent, { session, input: 'Go.', answers }))
        if (rest.state !== 'WAITING_FOR_INPUT') return rest
        answers = (rest.pending ?? []).map(({ callId, fingerprint }) => ({
          type: 'approve',
          callId,
          fingerprint,
        }))
      } catch (error) {
        if (!(error instanceof StoreError && error.code === 'session_busy')) throw error
        // A live process has it, or the lease of a killed one has not expired.
        await place.pass(100)
        if (i > 10 && this.killed > 0) place.outlive()
      }
    }
    throw new Error(`Session '${session}' does not end.`)
  }
}

/** A stopped drive releases the session at the moment a message arrives for it. */
const toldWhileLeft = {
  ways: [2, 5, 3, 7, 3, 7, 10, 5],
  deeds: [
    { gap: 35, by: 0, what: { type: 'answer' } },
    { gap: 33, by: 0, what: { type: 'drive', stopAfter: 35 } },
    { gap: 40, by: 0, what: { type: 'answer' } },
    { gap: 33, by: 2, what: { type: 'steer' } },
    { gap: 3, by: 0, what: { type: 'drive', stopAfter: 17 } },
    { gap: 15, by: 0, what: { type: 'drive', stopAfter: null } },
    { gap: 11, by: 1, what: { type: 'fork' } },
    { gap: 52, by: 0, what: { type: 'drive', stopAfter: 56 } },
    { gap: 6, by: 1, what: { type: 'drive', stopAfter: 38 } },
    { gap: 3, by: 0, what: { type: 'resume' } },
  ] satisfies Deed[],
}

/**
 * Another process takes a run that waits for its sub-agent's question while this process receives a steer
 * message.
 */
const takenAtRest = {
  ways: [2, 4, 3, 0, 4, 4],
  deeds: [
    { gap: 42, by: 0, what: { type: 'drive', stopAfter: 51 } },
    { gap: 39, by: 1, what: { type: 'resume' } },
    { gap: 3, by: 1, what: { type: 'answer' } },
    { gap: 53, by: 2, what: { type: 'answer' } },
    { gap: 0, by: 2, what: { type: 'drive', stopAfter: null } },
    { gap: 37, by: 2, what: { type: 'answer' } },
    { gap: 14, by: 1, what: { type: 'answer' } },
    { gap: 13, by: 1, what: { type: 'drive', stopAfter: 52 } },
    { gap: 26, by: 2, what: { type: 'steer' } },
    { gap: 0, by: 1, what: { type: 'drive', stopAfter: 16 } },
  ] satisfies Deed[],
}

test('processes that share a session over a slow store complete it, and pay once', async () => {
  await fc.assert(
    fc.asyncProperty(delays, fc.array(deed, { maxLength: 12 }), async (ways, deeds) => {
      const story = new Story(ways)
      const { place, sessions, steered, paid } = story
      story.begin({ gap: 0, by: 0, what: { type: 'drive', stopAfter: null } })
      for (const each of deeds) {
        await place.pass(each.gap)
        story.begin(each)
      }
      for (const session of sessions) {
        expect(await story.finish(session)).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
      }
      await place.pass(100)
      expect(story.wrong).toEqual([])
      for (const each of payments) {
        const times = paid.filter((text) => text === each).length
        expect(times).toBeLessThanOrEqual(sessions.length)
        // Payments started before a kill or a fork are not repeated.
        if (story.killed === 0 && sessions.length === 1) expect([each, times]).toEqual([each, 1])
      }
      // A process killed during a fork keeps the new session's lease until it expires.
      if (story.killed > 0) place.outlive()
      for (const { id } of place.near.list()) expect(place.near.get(id)).toMatchObject({ holder: null })
      const { agent } = story.enter()
      const { messages } = await place.of(agent.replay('s'))
      expect(findHistoryProblem(messages)).toBeNull()
      for (const [text, isInTime] of steered) {
        const times = messages.filter(({ content }) => content === text).length
        expect(times).toBeLessThanOrEqual(1)
        if (isInTime) expect([text, times]).toEqual([text, 1])
      }
      expect(messages.filter(({ role }) => role === 'tool')).toHaveLength(4)
    }),
    {
      ...cases,
      endOnFailure: true,
      examples: [
        [toldWhileLeft.ways, toldWhileLeft.deeds],
        [takenAtRest.ways, takenAtRest.deeds],
      ],
    },
  )
})
