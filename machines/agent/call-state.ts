import { isLate } from './approvals.js'
import { type AgentContext, type AgentMachineEvent, getEventTime } from './context.js'
import { isGrantEnded } from './grants.js'
import type { BatchCall, ToolResult, ToolTraits } from './batch-calls.js'

type Tools = Record<string, ToolTraits>

/**
 * It may have had an effect that must not be repeated. If the event resumes the run, the resuming program's tools must
 * allow the repetition too, and neither the call nor its grant may have expired.
 */
export function isInDoubt(context: AgentContext, call: BatchCall, event?: AgentMachineEvent): boolean {
  const { tools } = context
  // Loading a tool has no effect.
  if (!isUnderWay(call) || call.unloaded) return false
  // An unknown tool had no effect.
  if (!Object.hasOwn(tools, call.name)) return false
  const time = event && getEventTime(event)
  const isOver = time !== undefined && (isLate(call, time) || isGrantEnded(context, call, time))
  const now = (event && findResumedTools(event)) ?? tools
  return [tools, now].some((each) => !canGoOn(each, call, isOver))
}

export function isUnderWay({ started, result }: BatchCall): boolean {
  return started === true && result === undefined
}

export function findResumedTools(event: AgentMachineEvent): Tools | undefined {
  return event.type === 'RESUMED' ? event.tools : undefined
}

function canGoOn(tools: Tools, { name, handle }: BatchCall, isOver: boolean): boolean {
  const traits = Object.hasOwn(tools, name) ? tools[name] : undefined
  if (traits?.delegate || (traits?.keepsHandle && handle !== undefined)) return true
  return !isOver && (traits?.readOnly === true || traits?.idempotent === true)
}

type Batch = Pick<AgentContext, 'tools' | 'calls'>

export function findEndingCall({ tools, calls }: Batch): BatchCall | undefined {
  return calls.find(
    (call) => hasSucceeded(call) && Object.hasOwn(tools, call.name) && tools[call.name]?.endsRun,
  )
}

/** The call whose tool ends the run, or the last successful one if `stopWhen` ended it. */
export function findAnsweringCall(batch: Batch): BatchCall | undefined {
  return findEndingCall(batch) ?? batch.calls.findLast(hasSucceeded)
}

function hasSucceeded({ result }: { result?: ToolResult }): boolean {
  return result?.status === 'ok'
}
