import { initialTransition } from 'xstate'
import type { AgentEvent, EmittedEvent } from '../../../machines/agent/announcements.js'
import { type AnyTools, isRestState } from '../../../machines/agent/run-result.js'
import { createNap, whenAborted } from '../base/abort.js'
import { UsageError } from '../base/errors.js'
import { unknownSessionError } from '../sessions/store/store-error.js'
import { checkSessionId } from '../sessions/store/session-id.js'
import type { StoreParts } from '../sessions/open-session.js'
import type { LogRecord } from '../sessions/store/store.js'
import { findLiveSession, followSession, type LiveSession } from './live-sessions.js'
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

/** Reads the events of a log. The machine is pure, so folding the records emits the same events again. */
function createEventReader(sessionId: string) {
  let folded: FoldedSession | undefined
  let announced: EmittedEvent[] = []
  const collect = ([run, actions]: ReturnType<typeof initialTransition<typeof agentMachine>>): FoldedRun => {
    for (const { type, params } of actions as readonly { type: string; params: unknown }[]) {
      if (type === 'xstate.emit') announced.push((params as { event: EmittedEvent }).event)
    }
    return run
  }
  const folding: RunReducer = {
    ...pureReducer,
    start: (input) => collect(initialTransition(agentMachine, input)),
    step: (run, event) => collect(takeEvent(run, event)),
  }
  return {
    getFolded: () => folded,
    takeRecord(record: LogRecord): readonly EmittedEvent[] {
      folded ??= createFoldedSession([record])
      announced = []
      applyRecord(folded, record, sessionId, folding)
      return announced
    },
  }
}

export function* replayEvents(
  records: readonly LogRecord[],
  sessionId: string,
): Generator<{ record: LogRecord; events: readonly EmittedEvent[] }> {
  const log = createEventReader(sessionId)
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

const doNothing = (): void => undefined

/** From the session's growing log, or live if the run is in this process. `left` also ends the watch. */
export async function* watchSession(
  { store, clock }: StoreParts,
  sessionId: string,
  options: WatchOptions = {},
  left: AbortSignal = new AbortController().signal,
): AsyncGenerator<WatchedEvent, void> {
  const id = checkSessionId(sessionId)
  const { after = 0, until = 'rest', signal } = options ?? {}
  const { record, delivered } = parsePosition(after)
  if (!['rest', 'end', 'never'].includes(until))
    throw invalidOptionError('until', "must be 'rest', 'end' or 'never'")
  if (signal !== undefined && typeof signal?.addEventListener !== 'function')
    throw invalidOptionError('signal', 'must be an AbortSignal')
  const log = createEventReader(id)
  const ready: WatchedEvent[] = []
  /** Live events that arrived while earlier records were being read. */
  const buffered: AgentEvent[] = []
  const nap = createNap(clock)
  let seq = 0
  let last = `${record}.${delivered}`
  let runId = ''
  let isStopped = false
  let isReading = false
  /** Whether the log may have grown since it was last read. */
  let isDue = true
  let unfollow = doNothing
  let unlisten = doNothing
  let live: LiveSession | undefined
  /** The attempt that lost part of its text. */
  let lost: string | null = null
  /** The attempt that was in progress when live events started. */
  let joined: string | null = null

  const unfollowSignals = [signal, left].map((one) => one && whenAborted(one, stop))
  try {
    if ((await store.get(id)) === null && !findLiveSession(store, id)) throw unknownSessionError(id)
    unfollow = followSession(store, id, () => {
      isDue = true
      listenLive()
      nap.wake()
    })
    const known = delivered > 0 ? record - 1 : record
    if (known > 0) {
      for (const each of await store.read(id, { from: 'snapshot', to: known })) log.takeRecord(each)
      runId = log.getFolded()?.run?.context.runId ?? ''
    }
    for (;;) {
      const event = ready.shift()
      if (isStopped) return
      if (event) yield event
      else if (isDue) await readPage()
      else if (isOver()) return
      // If another process holds the session, waits for the next poll.
      else if (await nap.sleep(live ? Infinity : lookMs)) isDue = true
    }
  } finally {
    for (const unfollowSignal of unfollowSignals) unfollowSignal?.()
    stop()
  }

  function stop(): void {
    isStopped = true
    unfollow()
    unlisten()
    nap.wake()
  }

  function isOver(): boolean {
    if (live || until === 'never') return false
    const run = log.getFolded()?.run
    if (!run) return until === 'rest'
    return run.status !== 'active' || (until === 'rest' && isRestState(run.context.state))
  }

  async function readPage(): Promise<void> {
    isDue = false
    isReading = true
    const from = (log.getFolded()?.head ?? 0) + 1
    const records = await store.read(id, { from, to: from + pageSize - 1 })
    for (const each of records) {
      const announcements = log.takeRecord(each)
      runId = log.getFolded()?.run?.context.runId ?? runId
      announcements.forEach((announcement, index) => {
        if (each.seq === record && index < delivered) return
        last = `${each.seq}.${index + 1}`
        pushEvent(announcement, each.at)
      })
    }
    isReading = false
    if (records.length === pageSize) {
      isDue = true
      return
    }
    listenLive()
    for (const event of buffered.splice(0)) takeLive(event)
    if (records.length === 0 && !live && (await store.get(id)) === null) stop()
  }

  function pushEvent(announcement: EmittedEvent, at: number): void {
    seq += 1
    ready.push({ ...announcement, id: last, runId, seq, at, record: log.getFolded()?.head ?? 0 })
  }

  /** Subscribes to the run if it is in this process. The text of the run's current answer is emitted first. */
  function listenLive(): void {
    const current = findLiveSession(store, id)
    if (current === live) return
    unlisten()
    live = current
    unlisten = doNothing
    if (!current) return
    runId = current.runId
    const answer = current.answer()
    unlisten = current.listen((event) => {
      if (!liveOnly.has(event.type)) return
      if (isReading || isDue) buffered.push(event)
      else takeLive(event)
      if (buffered.length > mostWaiting) buffered.splice(0, buffered.length - mostWaiting)
      nap.wake()
    })
    // The first parts of this answer's calls were missed, so the calls are emitted when they are complete.
    joined = answer?.hasCalls ? `${answer.stepId} ${answer.attempt}` : null
    if (answer === null || answer.text === '') return
    const { stepId, attempt, text } = answer
    const chunk = { type: 'stream_chunk', stepId, attempt, text, finished: false, reset: true } as const
    pushEvent(chunk, clock.now())
  }

  function takeLive({ id: _id, runId: liveId, seq: _seq, at, ...announcement }: AgentEvent): void {
    const isCall = announcement.type === 'tool_call_delta'
    const attempt =
      isCall || announcement.type === 'stream_chunk' ? `${announcement.stepId} ${announcement.attempt}` : null
    if (isCall && attempt === joined) return
    if (ready.length >= mostWaiting) {
      lost = attempt ?? lost
      return
    }
    if (attempt !== null && attempt === lost) return
    runId = liveId
    pushEvent(announcement as EmittedEvent, at)
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
