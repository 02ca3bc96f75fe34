import type { AgentContext } from './context.js'
import type { BatchCall, ToolResult } from './batch-calls.js'

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
