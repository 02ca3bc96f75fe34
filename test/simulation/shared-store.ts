import { memoryStore } from '../../src/core/sessions/store/memory-store.js'
import type {
  Lease,
  LogRecord,
  SessionSummary,
  SyncSessionStore,
} from '../../src/core/sessions/store/store.js'
import { LogView } from './log-view.js'
import type { Life, World } from './world.js'

/** The time from the last fault until all work must have settled, in milliseconds. */
const unrest = 75_000

/** The maximum delay until a sleep reaches the store, in milliseconds. */
const wakeSlackMs = 60_000

/** The permitted writer of a session, according to its store. */
interface Grant {
  token: string
  life: string
  expiresAt: number
  since: number
}

/** A message that is or was in an inbox. */
export interface Landed {
  session: string
  message: number
  text: string
  at: number
  /** The active run, or 0 for none. */
  run: number
  /** The lease at that moment, or null if no process held the session. */
  token: string | null
}

/**
 * The store of all processes, which is the product's in-memory store in true time, like a server. Independent
 * rules check its calls. It must have one writer at a time.
 */
export class SharedStore {
  readonly store: SyncSessionStore
  readonly views = new Map<string, LogView>()
  readonly landed: Landed[] = []
  readonly #world: World
  readonly #grants = new Map<string, Grant>()
  /** The last writer of each session. */
  readonly #writers = new Map<string, Life>()
  /** The sleeping sessions: the start in true time, and the duration in the log. */
  readonly #sleepers = new Map<string, { since: number; ms: number; wakeAt: number }>()

  constructor(world: World) {
    this.#world = world
    this.store = memoryStore({ now: () => world.now })
  }

  view(session: string): LogView {
    const view = this.views.get(session) ?? new LogView()
    this.views.set(session, view)
    return view
  }

  /** The current lease. */
  grantOf(session: string): Grant | undefined {
    const grant = this.#grants.get(session)
    return grant && grant.expiresAt > this.#world.now ? grant : undefined
  }

  acquire(life: Life, session: string, options: { holder: string; ttlMs: number }): Lease {
    const lease = this.store.acquire(session, options)
    const before = this.grantOf(session)
    if (before) this.#world.break(`Two hold ${session}: ${before.life}, and ${life.name} has got it, too.`)
    this.#grants.set(session, {
      token: lease.token,
      life: life.name,
      expiresAt: lease.expiresAt,
      since: this.#world.time,
    })
    return lease
  }

  renew(lease: Lease, ttlMs: number): Lease {
    const renewed = this.store.renew(lease, ttlMs)
    const grant = this.#grants.get(lease.sessionId)
    if (grant?.token !== lease.token)
      this.#world.break(`A lease of ${lease.sessionId} was renewed that is not the latest.`)
    else grant.expiresAt = renewed.expiresAt
    return renewed
  }

  release(lease: Lease) {
    const result = this.store.release(lease)
    if (this.#grants.get(lease.sessionId)?.token === lease.token) this.#grants.delete(lease.sessionId)
    return result
  }

  /** Adds records and returns their summaries. */
  append(
    life: Life,
    lease: Lease,
    records: readonly LogRecord[],
    summary: SessionSummary | undefined,
    options: { release?: boolean },
  ) {
    const { sessionId: session } = lease
    const answer = this.store.append(lease, records, summary, options)
    const grant = this.grantOf(session)
    if (grant?.token !== lease.token)
      this.#world.break(
        `${life.name} has written to ${session} under a lease that ${grant ? `${grant.life} has now` : 'is over'}.`,
      )
    const view = this.view(session)
    const words = records.map((record) => {
      if (record.seq !== view.head + 1)
        this.#world.break(`Record ${record.seq} of ${session} follows record ${view.head}.`)
      return view.add(record)
    })
    if (answer?.released) this.#grants.delete(session)
    if (words.includes('RESUMED')) this.#checkTakeover(life, session)
    this.#checkSleep(session, records, summary)
    this.#writers.set(session, life)
    if (summary) this.#checkCancels(session, view, grant, summary)
    return { answer, words }
  }

  /** A scheduler never wakes a run early, by the log's time or by true time. People may. */
  #checkSleep(session: string, records: readonly LogRecord[], summary: SessionSummary | undefined): void {
    // A sub-agent wakes with its parent run.
    if (session.includes(':')) return
    const world = this.#world
    const sleeper = this.#sleepers.get(session)
    for (const { data, at } of records) {
      if (!sleeper) break
      const { event } = JSON.parse(data) as { event?: { type: string; inbox?: number } }
      if (event?.type !== 'RESUME' || event.inbox !== undefined) continue
      const slept = world.time - sleeper.since
      if (at < sleeper.wakeAt)
        world.break(`${session} is woken at ${at}, and sleeps until ${sleeper.wakeAt}.`)
      else if (slept < sleeper.ms - wakeSlackMs)
        world.break(`${session} is woken after ${slept} ms, of ${sleeper.ms}.`)
    }
    const last = records.at(-1)
    if (!last || !summary) return
    const { wakeAt } = summary
    if (wakeAt === undefined) this.#sleepers.delete(session)
    else if (wakeAt !== sleeper?.wakeAt)
      this.#sleepers.set(session, { since: world.time, ms: wakeAt - last.at, wakeAt })
  }

  /**
   * A run may be taken over only from a process that is dead, asleep, stopped, or cut off from its store.
   */
  #checkTakeover(life: Life, session: string): void {
    const world = this.#world
    const before = this.#writers.get(session)
    const root = session.split(':')[0] ?? ''
    const work = before?.working.get(root)
    if (!before || before === life || !work || !before.isAlive || before.isPaused) return
    if (world.time - world.troubledAt < unrest) return
    // It may be about to leave the session.
    world.after(5000, null, () => {
      if (before.isAlive && before.working.get(root) === work)
        world.break(`${life.name} has taken ${session} over from ${before.name}, which works at it.`)
    })
  }

  /** A process that takes an unowned session with a pending stop must stop it. */
  #checkCancels(session: string, view: LogView, grant: Grant | undefined, { state }: SessionSummary): void {
    const isOver =
      state !== null && !['RUNNING', 'WAITING_FOR_TOOL', 'WAITING_FOR_INPUT', 'PAUSED'].includes(state)
    if (!isOver || state === 'CANCELLED' || !grant) return
    for (const one of this.landed) {
      if (one.session !== session || one.run !== view.runs || one.token !== null || one.at >= grant.since)
        continue
      if (one.text.startsWith('{"type":"CANCEL"'))
        this.#world.break(
          `Run ${one.run} of ${session} ends ${state}, and message ${one.message} had cancelled it.`,
        )
    }
  }

  put(session: string, text: string) {
    const delivery = this.store.inbox.put(session, text)
    const state = this.store.get(session)?.summary?.state ?? null
    const isUnderWay =
      state !== null && ['RUNNING', 'WAITING_FOR_TOOL', 'WAITING_FOR_INPUT', 'PAUSED'].includes(state)
    this.landed.push({
      session,
      message: delivery.message,
      text,
      at: this.#world.time,
      run: isUnderWay ? this.view(session).runs : 0,
      token: this.grantOf(session)?.token ?? null,
    })
    return delivery
  }

  hasLanded(session: string, message: number): boolean {
    return this.landed.some((one) => one.session === session && one.message === message)
  }

  remove(session: string, messages: readonly number[]): void {
    this.store.inbox.remove(session, messages)
    const view = this.view(session)
    for (const message of messages) {
      const one = this.landed.find((each) => each.session === session && each.message === message)
      if (!one || !isUserMessage(one.text) || isSaid(view, one.text)) continue
      const isLeftTwice = this.store.inbox
        .read(session)
        .some(({ text }) => isUserMessage(text) && findMessageId(text) === findMessageId(one.text))
      if (!isLeftTwice)
        this.#world.break(`Message ${message} of ${session} is taken out of the inbox before the log has it.`)
    }
  }

  /** Inbox messages that are in no log. */
  unread(session: string): number[] {
    return this.store.inbox.read(session).map(({ message }) => message)
  }
}

const isUserMessage = (text: string): boolean => text.startsWith('{"type":"MESSAGE"')

const findMessageId = (text: string): string => (JSON.parse(text) as { messageId: string }).messageId

/** Whether a log contains a user message of an inbox. */
export function isSaid(view: LogView, text: string): boolean {
  return (view.messageCounts.get(findMessageId(text)) ?? 0) > 0
}
