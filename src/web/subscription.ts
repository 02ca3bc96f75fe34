import type { AgentContext } from '../../machines/agent/context.js'
import type { Message } from '../../machines/agent/messages.js'
import { listAnswerableCalls } from '../../machines/agent/to-result.js'
import { toApprovalId } from './approval-id.js'
import type { LiveRun } from './live-runs.js'
import { type EventReader, ReplayBuffer } from './replay-buffer.js'
import { type Turn, toTurn } from './chat-turn.js'

/** An answer that somebody looks at. */
export interface Subscription {
  /** The conversation up to the user's message that is answered, and with it. */
  before: readonly Message[]
  /** What was there before the feed begins; null: the run begins with it. */
  turn: Turn | null
  /** Whether the page is to be shown `turn`, too: it comes late, or has forgotten. */
  showsTurn: boolean
  /** Questions (by `approvalIdOf`) that were asked and have been answered since. */
  answeredQuestions: ReadonlySet<string>
  /** What is told from here on; its end is the run's next rest. */
  reader: EventReader
  /** Nobody looks any more. Absent where that makes no difference. */
  unsubscribe?(): void
}

const noQuestions: ReadonlySet<string> = new Set()

/** From the beginning of the answer. */
export function subscribeFromStart(live: LiveRun): Subscription {
  return {
    before: getMessagesBefore(live),
    turn: live.turn,
    showsTurn: true,
    answeredQuestions: listAnsweredQuestions(live),
    reader: live.buffer.createReader(),
  }
}

/**
 * For a page that has what came before: what comes from now on. `isContinued`: the run has just been taken up, so that
 * everything in its feed is new.
 */
export function subscribeFromNow(live: LiveRun, { isContinued = false } = {}): Subscription {
  const { turn, buffer } = live
  const reader = isContinued ? buffer.createReader() : buffer.createReader('now')
  return { before: getMessagesBefore(live), turn, showsTurn: false, answeredQuestions: noQuestions, reader }
}

/** An answer that is at rest, or over. */
export function createFinishedSubscription(turn: Turn): Subscription {
  const buffer = new ReplayBuffer()
  buffer.end()
  return {
    before: turn.before,
    turn,
    showsTurn: true,
    answeredQuestions: noQuestions,
    reader: buffer.createReader(),
  }
}

/** A run that began here knows its session once it has been read. */
function getMessagesBefore({ run, turn }: LiveRun): readonly Message[] {
  if (turn) return turn.before
  const { context } = run.snapshot() as { context: AgentContext }
  return toTurn(context).before
}

function listAnsweredQuestions({ run, turn, buffer }: LiveRun): ReadonlySet<string> {
  const asked = new Set<string>((turn?.pending ?? []).map(toApprovalId))
  for (const entry of buffer.entries)
    if ('event' in entry && entry.event?.type === 'approval_requested') asked.add(toApprovalId(entry.event))
  if (asked.size === 0) return noQuestions
  const { context } = run.snapshot() as { context: AgentContext }
  for (const open of listAnswerableCalls(context)) asked.delete(toApprovalId(open))
  return asked
}
