import type { AgentContext } from '../../../machines/agent/context.js'
import { isInDoubt } from '../../../machines/agent/call-state.js'

/** Internal functions of run handles, for the code that drives the runs. */
interface RunControls {
  release(run: object): Promise<void>
  /** Ends questions that have expired at this time. */
  expire(run: object, at: number): void
}

let controls: RunControls | undefined

/** Called once by the `Run` class, which this layer cannot import. */
export function provideControls(of: RunControls): void {
  controls = of
}

/** Ends the questions of a resting run that have expired at the time `at`, which may come from a different clock. */
export function expireRun(run: object, at: number): void {
  controls?.expire(run, at)
}

/**
 * Releases a run to another process. No new effects start. Non-repeatable effects finish, others are dropped. Resolves
 * when the session has been released.
 */
export async function releaseRun(run: object): Promise<void> {
  await controls?.release(run)
}

/** Whether another process could resume the run from its log now without repeating a call that must not run twice. */
export function canResumeFromLog(context: AgentContext): boolean {
  return !context.calls.some((call) => isInDoubt(context, call))
}
