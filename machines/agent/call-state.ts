import type { AgentContext } from './context.js'
import type { AgentMachineEvent } from './machine-events.js'
import type { BatchCall, ToolResult, ToolTraits } from './batch-calls.js'

type Tools = Record<string, ToolTraits>

/**
 * Whether a call was running when the process died and may have had an effect that must not be repeated. `now` has the
 * tools of the resuming program, which must also allow a repetition.
 */
export function isInDoubt({ tools }: AgentContext, call: BatchCall, now: Tools = tools): boolean {
  // Loading a tool has no effect.
  if (!isUnderWay(call) || call.unloaded) return false
  // An unknown tool had no effect.
  if (!Object.hasOwn(tools, call.name)) return false
  return !canRunTwice(tools, call) || !canRunTwice(now, call)
}

export function isUnderWay({ started, result }: BatchCall): boolean {
  return started === true && result === undefined
}

/** The tools of the resuming program. */
export function findResumedTools(event: AgentMachineEvent): Tools | undefined {
  return event.type === 'RESUMED' ? event.tools : undefined
}

/** A call with a handle continues from it. */
function canRunTwice(tools: Tools, { name, handle }: BatchCall): boolean {
  const traits = Object.hasOwn(tools, name) ? tools[name] : undefined
  const goesOn = traits?.keepsHandle === true && handle !== undefined
  return goesOn || traits?.readOnly === true || traits?.idempotent === true || traits?.delegate === true
}

type Batch = Pick<AgentContext, 'tools' | 'calls'>

/** The first successful call whose tool ends the run. */
export function findEndingCall({ tools, calls }: Batch): BatchCall | undefined {
  return calls.find(
    (call) => hasSucceeded(call) && Object.hasOwn(tools, call.name) && tools[call.name]?.endsRun,
  )
}

/**
 * The call whose result is the answer. Its tool ends the run, or it is the last successful call when `stopWhen` ended
 * the run.
 */
export function findAnsweringCall(batch: Batch): BatchCall | undefined {
  return findEndingCall(batch) ?? batch.calls.findLast(hasSucceeded)
}

function hasSucceeded({ result }: { result?: ToolResult }): boolean {
  return result?.status === 'ok'
}
