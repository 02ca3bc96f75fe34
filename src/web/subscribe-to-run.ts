import type { AgentContext } from '../../machines/agent/context.js'
import { createFinishedSubscription, type Subscription } from './subscription.js'
import type { AnyRun } from './live-runs.js'
import { ReplayBuffer } from './replay-buffer.js'
import { type Turn, toTurn } from './chat-turn.js'

/** The events of a run from one rest to the next. */
interface RunSegment {
  /** The turn before them; null for a run that began here. */
  turn: Turn | null
  buffer: ReplayBuffer
}

const segmentByRun = new WeakMap<AnyRun, RunSegment>()

/**
 * Subscribes to a run without a handler, up to its next rest. A second call after an answer gets the events since that
 * rest, and no event twice.
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
    ends: segment.turn?.ends ?? [],
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
    // The call that started the run rejects with the reason.
    error: () => {
      first.buffer.end()
    },
  })
  return first
}

/** The current turn of a run; null while it has not begun. */
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
