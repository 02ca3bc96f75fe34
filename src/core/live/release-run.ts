import type { AgentContext } from '../../../machines/agent/context.js'
import { isInDoubt } from '../../../machines/agent/call-state.js'

/** Release functions by run handle. */
const releases = new WeakMap<object, () => Promise<void>>()

export function registerRelease(run: object, leave: () => Promise<void>): void {
  releases.set(run, leave)
}

/**
 * Releases a run to another process. No new effects start, non-repeatable effects finish, and others are dropped. The
 * session is released when this settles.
 */
export async function releaseRun(run: object): Promise<void> {
  await releases.get(run)?.()
}

/** Whether another process can resume the run from its log now, without repeating a call that must not run twice. */
export function canResumeFromLog(context: AgentContext): boolean {
  return !context.calls.some((call) => isInDoubt(context, call))
}
