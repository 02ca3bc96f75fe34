import type { AgentContext } from '../../machines/agent/context.js'
import type { TurnEnd } from '../../machines/agent/run-result.js'
import type { Message } from '../../machines/agent/messages.js'
import { isRequest } from '../../machines/agent/requests.js'
import { listAnswerableCalls } from '../../machines/agent/to-result.js'
import type { BranchPoint } from '../core/sessions/branch-tree.js'
import { toApprovalId } from './approval-id.js'
import type { LiveRun } from './live-runs.js'
import { type EventReader, ReplayBuffer } from './replay-buffer.js'
import { type Turn, toTurn } from './chat-turn.js'

/** A page's view of one answer. */
export interface Subscription {
  /** The conversation up to and including the user message that is answered. */
  before: readonly Message[]
  /** Ends of the runs of the session so far that did not answer in full. */
  ends: readonly TurnEnd[]
  /** What exists before the first event of the buffer; null: the buffer begins with the run. */
  turn: Turn | null
  /** Whether the page must be sent `turn`, too: it subscribed late, or was reloaded. */
  showsTurn: boolean
  /** Approval requests (by `toApprovalId`) that have been answered since. */
  answeredQuestions: ReadonlySet<string>
  /** The events from here on, up to the run's next rest. */
  reader: EventReader
  /** Where the answer parts from other branches. */
  point?: BranchPoint | undefined
  /** The response stays open until it settles. */
  closing?: Promise<void> | undefined
  /** Ends the subscription. Absent when there is nothing to release. */
  unsubscribe?(): void
}

const noQuestions: ReadonlySet<string> = new Set()

/** Subscribes from the beginning of the answer. */
export function subscribeFromStart(live: LiveRun): Subscription {
  return {
    ...getPast(live),
    turn: live.turn,
    showsTurn: true,
    answeredQuestions: listAnsweredQuestions(live),
    reader: live.buffer.createReader(),
    point: live.point,
    closing: live.closing,
  }
}

/**
 * Subscribes a page that has the answer so far. `isContinued`: the run has just been resumed, so that everything in its
 * buffer is new.
 */
export function subscribeFromNow(live: LiveRun, { isContinued = false } = {}): Subscription {
  const { turn, buffer } = live
  const reader = isContinued ? buffer.createReader() : buffer.createReader('now')
  const { closing } = live
  return { ...getPast(live), turn, showsTurn: false, answeredQuestions: noQuestions, reader, closing }
}

/** A subscription to an answer that is at rest or has ended. */
export function createFinishedSubscription(turn: Turn): Subscription {
  const buffer = new ReplayBuffer()
  buffer.end()
  return {
    before: turn.before,
    ends: turn.ends,
    turn,
    showsTurn: true,
    answeredQuestions: noQuestions,
    reader: buffer.createReader(),
  }
}

/** A run that began here has its context once the session has been read. */
function getPast({ run, turn }: LiveRun): Pick<Subscription, 'before' | 'ends'> {
  if (turn) return { before: turn.before, ends: turn.ends }
  const { context } = run.snapshot() as { context: AgentContext }
  return { before: toTurn(context).before, ends: context.ends ?? [] }
}

function listAnsweredQuestions({ run, turn, buffer }: LiveRun): ReadonlySet<string> {
  const asked = new Set<string>((turn?.pending ?? []).map(toApprovalId))
  for (const entry of buffer.entries)
    if ('event' in entry && entry.event && isRequest(entry.event)) asked.add(toApprovalId(entry.event))
  if (asked.size === 0) return noQuestions
  const { context } = run.snapshot() as { context: AgentContext }
  for (const open of listAnswerableCalls(context)) asked.delete(toApprovalId(open))
  return asked
}
