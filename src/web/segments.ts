import type { AgentContext } from '../../machines/agent/context.js'
import { finished, type Joined } from './joined.js'
import type { AnyRun } from './live-runs.js'
import { RunFeed } from './run-feed.js'
import { type Turn, turnOf } from './turn.js'

/** What a run tells from one rest to the next. */
interface Segment {
  /** What it had said before; null for a run that began here. */
  turn: Turn | null
  feed: RunFeed
}

const segments = new WeakMap<AnyRun, Segment>()

/**
 * A run that somebody looks at without a handler: what it tells up to its next rest. Who comes again after an answer gets
 * what it has told since it rested, and nothing of that twice.
 */
export function joinRun(run: AnyRun): Joined {
  const segment = segments.get(run) ?? follow(run)
  if (segment.turn && isOver(segment.turn)) return finished(segment.turn)
  const rests = (): void => {
    if (segments.get(run) !== segment) return
    segment.feed.end()
    segments.set(run, { turn: turnHere(run), feed: new RunFeed() })
  }
  run.result.then(rests, rests)
  const before = segment.turn?.before ?? []
  return { before, turn: segment.turn, showsTurn: false, answered: new Set(), reader: segment.feed.read() }
}

function follow(run: AnyRun): Segment {
  const first: Segment = { turn: turnHere(run), feed: new RunFeed() }
  segments.set(run, first)
  run.events$.subscribe({
    next: (event) => {
      segments.get(run)?.feed.push(event)
    },
    // Whoever started the run is told why it was refused.
    error: () => {
      first.feed.end()
    },
  })
  return first
}

/** What a run has said so far; null while it has not begun. */
function turnHere(run: AnyRun): Turn | null {
  try {
    const { context } = run.snapshot() as { context: AgentContext }
    return context.state === null ? null : turnOf(context)
  } catch {
    // Its session is still being read.
    return null
  }
}

const isOver = ({ state }: Turn): boolean =>
  !['RUNNING', 'WAITING_FOR_TOOL', 'WAITING_FOR_INPUT', 'PAUSED'].includes(state)
