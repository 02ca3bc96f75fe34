import type { AgentContext } from './context.js'
import type { AgentMachineEvent } from './machine-events.js'
import type { BatchCall, ToolResult, ToolTraits } from './batch-calls.js'

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

type Batch = Pick<AgentContext, 'tools' | 'calls'>

/** The first call of the batch whose tool ends the run, and that has succeeded. */
export function findEndingCall({ tools, calls }: Batch): BatchCall | undefined {
  return calls.find(
    (call) => hasSucceeded(call) && Object.hasOwn(tools, call.name) && tools[call.name]?.endsRun,
  )
}

/**
 * The call whose result is the answer, where one of the batch is: of a tool that ends the run, or else, where `stopWhen`
 * has ended it, the last that has succeeded.
 */
export function findAnsweringCall(batch: Batch): BatchCall | undefined {
  return findEndingCall(batch) ?? batch.calls.findLast(hasSucceeded)
}

function hasSucceeded({ result }: { result?: ToolResult }): boolean {
  return result?.status === 'ok'
}
