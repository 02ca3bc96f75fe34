import type { AgentContext } from '../../machines/agent/context.js'
import type { Message } from '../../machines/agent/messages.js'
import { listAnswerableCalls } from '../../machines/agent/to-result.js'
import { approvalIdOf } from './approval-id.js'
import type { LiveRun } from './live-runs.js'
import { type EventReader, RunFeed } from './run-feed.js'
import { type Turn, turnOf } from './turn.js'

/** An answer that somebody looks at. */
export interface Joined {
  /** The conversation up to the user's message that is answered, and with it. */
  before: readonly Message[]
  /** What was there before the feed begins; null: the run begins with it. */
  turn: Turn | null
  /** Whether the page is to be shown `turn`, too: it comes late, or has forgotten. */
  showsTurn: boolean
  /** Questions (by `approvalIdOf`) that were asked and have been answered since. */
  answered: ReadonlySet<string>
  /** What is told from here on; its end is the run's next rest. */
  reader: EventReader
  /** Nobody looks any more. Absent where that makes no difference. */
  leave?(): void
}

const none: ReadonlySet<string> = new Set()

/** From the beginning of the answer. */
export function joinedWhole(live: LiveRun): Joined {
  return {
    before: beforeOf(live),
    turn: live.turn,
    showsTurn: true,
    answered: answeredOf(live),
    reader: live.feed.read(),
  }
}

/**
 * For a page that has what came before: what comes from now on. `isContinued`: the run has just been taken up, so that
 * everything in its feed is new.
 */
export function joinedNow(live: LiveRun, { isContinued = false } = {}): Joined {
  const { turn, feed } = live
  const reader = isContinued ? feed.read() : feed.read('now')
  return { before: beforeOf(live), turn, showsTurn: false, answered: none, reader }
}

/** An answer that is at rest, or over. */
export function finished(turn: Turn): Joined {
  const feed = new RunFeed()
  feed.end()
  return { before: turn.before, turn, showsTurn: true, answered: none, reader: feed.read() }
}

/** A run that began here knows its session once it has been read. */
function beforeOf({ run, turn }: LiveRun): readonly Message[] {
  if (turn) return turn.before
  const { context } = run.snapshot() as { context: AgentContext }
  return turnOf(context).before
}

function answeredOf({ run, turn, feed }: LiveRun): ReadonlySet<string> {
  const asked = new Set<string>((turn?.pending ?? []).map(approvalIdOf))
  for (const entry of feed.entries)
    if ('event' in entry && entry.event?.type === 'approval_requested') asked.add(approvalIdOf(entry.event))
  if (asked.size === 0) return none
  const { context } = run.snapshot() as { context: AgentContext }
  for (const open of listAnswerableCalls(context)) asked.delete(approvalIdOf(open))
  return asked
}
