import type { AgentContext } from '../../machines/agent/context.js'
import { createFinishedSubscription, type Subscription } from './subscription.js'
import type { AnyRun } from './live-runs.js'
import { ReplayBuffer } from './replay-buffer.js'
import { type Turn, toTurn } from './chat-turn.js'

/** What a run tells from one rest to the next. */
interface RunSegment {
  /** What it had said before; null for a run that began here. */
  turn: Turn | null
  buffer: ReplayBuffer
}

const segmentByRun = new WeakMap<AnyRun, RunSegment>()

/**
 * A run that somebody looks at without a handler: what it tells up to its next rest. Who comes again after an answer gets
 * what it has told since it rested, and nothing of that twice.
 */
export function subscribeToRun(run: AnyRun): Subscription {
  const segment = segmentByRun.get(run) ?? followRun(run)
  if (segment.turn && hasEnded(segment.turn)) return createFinishedSubscription(segment.turn)
  const startNextSegment = (): void => {
    if (segmentByRun.get(run) !== segment) return
    segment.buffer.end()
    segmentByRun.set(run, { turn: findTurn(run), buffer: new ReplayBuffer() })
  }
  run.result.then(startNextSegment, startNextSegment)
  const before = segment.turn?.before ?? []
  return {
    before,
    turn: segment.turn,
    showsTurn: false,
    answeredQuestions: new Set(),
    reader: segment.buffer.createReader(),
  }
}

function followRun(run: AnyRun): RunSegment {
  const first: RunSegment = { turn: findTurn(run), buffer: new ReplayBuffer() }
  segmentByRun.set(run, first)
  run.events$.subscribe({
    next: (event) => {
      segmentByRun.get(run)?.buffer.push(event)
    },
    // Whoever started the run is told why it was refused.
    error: () => {
      first.buffer.end()
    },
  })
  return first
}

/** What a run has said so far; null while it has not begun. */
function findTurn(run: AnyRun): Turn | null {
  try {
    const { context } = run.snapshot() as { context: AgentContext }
    return context.state === null ? null : toTurn(context)
  } catch {
    // Its session is still being read.
    return null
  }
}

const hasEnded = ({ state }: Turn): boolean =>
  !['RUNNING', 'WAITING_FOR_TOOL', 'WAITING_FOR_INPUT', 'PAUSED'].includes(state)
