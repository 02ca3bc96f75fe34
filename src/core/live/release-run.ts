import { isInDoubt } from '../../../machines/agent/in-doubt.js'
import type { AgentContext } from '../../../machines/agent/context.js'

/** How each run is left to another process, by the handle that others have of it. */
const releases = new WeakMap<object, () => Promise<void>>()

export function registerRelease(run: object, leave: () => Promise<void>): void {
  releases.set(run, leave)
}

/**
 * Leaves a run to another process: nothing of it starts from now on, what cannot be repeated is finished, what can be
 * is dropped, and its session is free when this settles.
 */
export async function releaseRun(run: object): Promise<void> {
  await releases.get(run)?.()
}

/** Whether a run could go on elsewhere from its log as it stands, and repeat nothing that must not come twice. */
export function canResumeFromLog(context: AgentContext): boolean {
  return !context.calls.some((call) => isInDoubt(context, call))
}
