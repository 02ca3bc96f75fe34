import type { AgentContext } from '../../../machines/agent/context.js'
import { isInDoubt } from '../../../machines/agent/call-state.js'

/** Internal functions of a run handle, for the code that drives the run. */
interface RunControls {
  release(): Promise<void>
  /** Ends questions that have expired at this time. */
  expire(at: number): void
}

const controls = new WeakMap<object, RunControls>()

export function registerControls(run: object, of: RunControls): void {
  controls.set(run, of)
}

/** Ends the questions of a resting run that have expired at `at`, which may be from a different clock. */
export function expireRun(run: object, at: number): void {
  controls.get(run)?.expire(at)
}

/**
 * Releases a run to another process. No new effects start. Non-repeatable effects finish, others are dropped. Resolves
 * when the session has been released.
 */
export async function releaseRun(run: object): Promise<void> {
  await controls.get(run)?.release()
}

/** Whether another process could resume the run from its log now without repeating a call that must not run twice. */
export function canResumeFromLog(context: AgentContext): boolean {
  return !context.calls.some((call) => isInDoubt(context, call))
}
