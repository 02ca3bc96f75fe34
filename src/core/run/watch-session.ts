import { initialTransition } from 'xstate'
import type { AgentEvent, EmittedEvent } from '../../../machines/agent/announcements.js'
import { type AnyTools, isRestState } from '../../../machines/agent/run-result.js'
import { whenAborted } from '../base/abort.js'
import type { Clock } from '../base/clock.js'
import { UsageError } from '../base/errors.js'
import { unknownSessionError } from '../sessions/store/store-error.js'
import { checkSessionId } from '../sessions/store/session-id.js'
import type { SessionStore, LogRecord } from '../sessions/store/store.js'
import { type LiveSession, getLiveSessions } from './live-sessions.js'
import { agentMachine } from '../../../machines/agent.machine.js'
import {
  applyRecord,
  createFoldedSession,
  pureReducer,
  type FoldedRun,
  type RunReducer,
  type FoldedSession,
  takeEvent,
} from '../sessions/fold-session.js'

/** The events of a log. The machine is pure, so folding the records emits the same events again. */
class LoggedEvents {
  readonly #id: string
  folded: FoldedSession | undefined
  #announced: EmittedEvent[] = []

  constructor(sessionId: string) {
    this.#id = sessionId
  }

  takeRecord(record: LogRecord): readonly EmittedEvent[] {
    this.folded ??= createFoldedSession([record])
    this.#announced = []
    applyRecord(this.folded, record, this.#id, this.#folding)
    return this.#announced
  }

  readonly #folding: RunReducer = {
    ...pureReducer,
    start: (input) => this.#collect(initialTransition(agentMachine, input)),
    step: (run, event) => this.#collect(takeEvent(run, event)),
  }

  #collect([run, actions]: ReturnType<typeof initialTransition<typeof agentMachine>>): FoldedRun {
    for (const { type, params } of actions as readonly { type: string; params: unknown }[]) {
      if (type === 'xstate.emit') this.#announced.push((params as { event: EmittedEvent }).event)
    }
    return run
  }
}

export function* replayEvents(
  records: readonly LogRecord[],
  sessionId: string,
): Generator<{ record: LogRecord; events: readonly EmittedEvent[] }> {
  const log = new LoggedEvents(sessionId)
  for (const record of records) yield { record, events: log.takeRecord(record) }
}

export interface WatchOptions {
  /** The `id` of the last known event in a watch, or the number of a record. Defaults to the start of the log. */
  after?: string | number
  /**
   * When the watch ends: `rest` at a rest or a final state, `end` at a final state, and `never` only when `signal`
   * aborts or the session is deleted. Defaults to `rest`.
   */
  until?: 'rest' | 'end' | 'never'
  signal?: AbortSignal
}

/**
 * An event of a watched session. `seq` counts the events in this watch. `id` is a position to continue from, which is
 * the same in every process. For example, `12.3` is the third event in record 12. Live-only events repeat the
 * previous `id`.
 */
export type WatchedEvent<Tools = AnyTools> = AgentEvent<Tools> & {
  /** Number of the last record before the event. */
  record: number
}

/** Polling interval for a log that another process writes, in milliseconds. */
const lookMs = 500
const pageSize = 100
/** Maximum number of events that wait for a slow reader. Further live events are dropped. */
const mostWaiting = 1000

/** Events that are never in a log. */
const liveOnly: ReadonlySet<EmittedEvent['type']> = new Set([
  'stream_chunk',
  'tool_call_delta',
  'tool_progress',
  'step_started',
  'step_progress',
  'step_completed',
  'child_event',
  'message_queued',
  'message_dequeued',
  'waiting_for_slot',
])

/**
 * The events of a session. The events are read from the session's growing log, or received live if the run is in this
 * process. `left` also ends the watch.
 */
export async function* watchSession(
  { store, clock }: { store: SessionStore; clock: Clock },
  sessionId: string,
  options: WatchOptions = {},
  left: AbortSignal = new AbortController().signal,
): AsyncGenerator<WatchedEvent, void> {
  const id = checkSessionId(sessionId)
  const { after = 0, until = 'rest', signal } = options ?? {}
  const position = parsePosition(after)
  if (!['rest', 'end', 'never'].includes(until))
    throw invalidOptionError('until', "must be 'rest', 'end' or 'never'")
  if (signal !== undefined && typeof signal?.addEventListener !== 'function')
    throw invalidOptionError('signal', 'must be an AbortSignal')
  const watched = new SessionWatch({ store, clock }, id, position, until)
  const unfollow = [signal, left].map((one) => one && whenAborted(one, () => watched.stop()))
  try {
    await watched.begin()
    for (let event = await watched.next(); event; event = await watched.next()) yield event
  } finally {
    for (const stop of unfollow) stop?.()
    watched.stop()
  }
}

class SessionWatch {
  readonly #store: SessionStore
  readonly #clock: Clock
  readonly #id: string
  readonly #after: ReturnType<typeof parsePosition>
  readonly #until: WatchOptions['until']
  readonly #log: LoggedEvents
  readonly #ready: WatchedEvent[] = []
  /** Live events that arrived while earlier records were being read. */
  #buffered: AgentEvent[] = []
  #seq = 0
  #last: string
  #runId = ''
  #isStopped = false
  #isReading = false
  /** Whether the log may have grown since it was last read. */
  #isDue = true
  #wake: () => void = () => undefined
  readonly #undo: (() => void)[] = []
  #live: LiveSession | undefined
  #unlisten: () => void = () => undefined
  /** The attempt that lost part of its text. */
  #lost: string | null = null
  /** The attempt that was in progress when live events started. */
  #joined: string | null = null

  constructor(
    { store, clock }: { store: SessionStore; clock: Clock },
    id: string,
    after: ReturnType<typeof parsePosition>,
    until: WatchOptions['until'],
  ) {
    this.#store = store
    this.#clock = clock
    this.#id = id
    this.#after = after
    this.#until = until
    this.#log = new LoggedEvents(id)
    this.#last = `${after.record}.${after.delivered}`
  }

  async begin(): Promise<void> {
    const live = getLiveSessions(this.#store)
    if ((await this.#store.get(this.#id)) === null && !live.get(this.#id)) throw unknownSessionError(this.#id)
    this.#undo.push(live.follow(this.#id, () => this.#onChange()))
    const { record, delivered } = this.#after
    const known = delivered > 0 ? record - 1 : record
    if (known > 0) {
      for (const each of await this.#store.read(this.#id, { from: 'snapshot', to: known }))
        this.#log.takeRecord(each)
      this.#runId = this.#log.folded?.run?.context.runId ?? ''
    }
  }

  stop(): void {
    this.#isStopped = true
    for (const undo of this.#undo.splice(0)) undo()
    this.#unlisten()
    this.#wake()
  }

  async next(): Promise<WatchedEvent | null> {
    for (;;) {
      const event = this.#ready.shift()
      if (this.#isStopped) return null
      if (event) return event
      if (this.#isDue) await this.#readPage()
      else if (this.#isOver()) return null
      else await this.#wait()
    }
  }

  #isOver(): boolean {
    if (this.#live || this.#until === 'never') return false
    const run = this.#log.folded?.run
    if (!run) return this.#until === 'rest'
    return run.status !== 'active' || (this.#until === 'rest' && isRestState(run.context.state))
  }

  #onChange(): void {
    this.#isDue = true
    this.#listenLive()
    this.#wake()
  }

  async #readPage(): Promise<void> {
    this.#isDue = false
    this.#isReading = true
    const from = (this.#log.folded?.head ?? 0) + 1
    const records = await this.#store.read(this.#id, { from, to: from + pageSize - 1 })
    for (const record of records) {
      const announcements = this.#log.takeRecord(record)
      this.#runId = this.#log.folded?.run?.context.runId ?? this.#runId
      announcements.forEach((announcement, index) => {
        if (record.seq === this.#after.record && index < this.#after.delivered) return
        this.#last = `${record.seq}.${index + 1}`
        this.#pushEvent(announcement, record.at)
      })
    }
    this.#isReading = false
    if (records.length === pageSize) {
      this.#isDue = true
      return
    }
    this.#listenLive()
    for (const event of this.#buffered.splice(0)) this.#takeLive(event)
    if (records.length === 0 && !this.#live && (await this.#store.get(this.#id)) === null) this.stop()
  }

  #pushEvent(announcement: EmittedEvent, at: number): void {
    const record = this.#log.folded?.head ?? 0
    const stamp = { id: this.#last, runId: this.#runId, seq: (this.#seq += 1), at, record }
    this.#ready.push({ ...announcement, ...stamp })
  }

  /** Subscribes to the run if it is in this process. The text of the run's current answer is emitted first. */
  #listenLive(): void {
    const live = getLiveSessions(this.#store).get(this.#id)
    if (live === this.#live) return
    this.#unlisten()
    this.#live = live
    this.#unlisten = () => undefined
    if (!live) return
    this.#runId = live.runId
    const answer = live.answer()
    this.#unlisten = live.listen((event) => {
      if (!liveOnly.has(event.type)) return
      if (this.#isReading || this.#isDue) this.#buffered.push(event)
      else this.#takeLive(event)
      if (this.#buffered.length > mostWaiting) this.#buffered.splice(0, this.#buffered.length - mostWaiting)
      this.#wake()
    })
    // The first parts of this answer's calls were missed, so the calls are emitted when they are complete.
    this.#joined = answer?.hasCalls ? `${answer.stepId} ${answer.attempt}` : null
    if (answer === null || answer.text === '') return
    const { stepId, attempt, text } = answer
    const chunk = { type: 'stream_chunk', stepId, attempt, text, finished: false, reset: true } as const
    this.#pushEvent(chunk, this.#clock.now())
  }

  #takeLive({ id: _id, runId, seq: _seq, at, ...announcement }: AgentEvent): void {
    const isCall = announcement.type === 'tool_call_delta'
    const attempt =
      isCall || announcement.type === 'stream_chunk' ? `${announcement.stepId} ${announcement.attempt}` : null
    if (isCall && attempt === this.#joined) return
    if (this.#ready.length >= mostWaiting) {
      this.#lost = attempt ?? this.#lost
      return
    }
    if (attempt !== null && attempt === this.#lost) return
    this.#runId = runId
    this.#pushEvent(announcement as EmittedEvent, at)
  }

  /** Waits for an event in this process. If another process holds the session, waits for the next poll. */
  #wait(): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#live
        ? undefined
        : this.#clock.setTimeout(() => {
            this.#isDue = true
            this.#wake()
          }, lookMs)
      this.#wake = () => {
        this.#wake = () => undefined
        if (timer !== undefined) this.#clock.clearTimeout(timer)
        resolve()
      }
    })
  }
}

function parsePosition(after: string | number): { record: number; delivered: number } {
  const [, record, delivered = '0'] = /^(\d{1,15})(?:\.(\d{1,9}))?$/.exec(String(after)) ?? []
  if (record === undefined)
    throw invalidOptionError('after', "must be a watched event's id, such as '12.3', or a record number")
  return { record: Number(record), delivered: Number(delivered) }
}

function invalidOptionError(key: string, what: string): UsageError {
  return new UsageError('invalid_option', `watch({ ${key} }): it ${what}.`, key)
}
