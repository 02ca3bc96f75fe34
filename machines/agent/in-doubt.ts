import type { AgentContext } from './context.js'
import type { AgentMachineEvent } from './machine-events.js'
import type { BatchCall, ToolTraits } from './batch-calls.js'

type Tools = Record<string, ToolTraits>

/**
 * A call that was running when the process died, and may have had an effect that must not come twice. `now`: the tools of
 * the resuming program, where they differ: it has to allow a second run, too.
 */
export function isInDoubt({ tools }: AgentContext, call: BatchCall, now: Tools = tools): boolean {
  // A call that only loads its tool had no effect, either.
  if (!isUnderWay(call) || call.unloaded) return false
  // What did not exist had no effect.
  if (!Object.hasOwn(tools, call.name)) return false
  return !canRunTwice(tools, call) || !canRunTwice(now, call)
}

export function isUnderWay({ started, result }: BatchCall): boolean {
  return started === true && result === undefined
}

/** The tools of the program that resumes the run, from its event. */
export function findResumedTools(event: AgentMachineEvent): Tools | undefined {
  return event.type === 'RESUMED' ? event.tools : undefined
}

/** A call that has kept a handle goes on from it. */
function canRunTwice(tools: Tools, { name, handle }: BatchCall): boolean {
  const traits = Object.hasOwn(tools, name) ? tools[name] : undefined
  const goesOn = traits?.keepsHandle === true && handle !== undefined
  return goesOn || traits?.readOnly === true || traits?.idempotent === true || traits?.delegate === true
}
