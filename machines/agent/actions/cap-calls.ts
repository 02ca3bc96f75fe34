import {
  type CallCap,
  type CallCaps,
  countCalls,
  formatCapMessage,
  noCallCounts,
} from '../../../guards/call-caps.js'
import type { EmittedEvent } from '../announcements.js'
import type { BatchCall, ToolResult } from '../batch-calls.js'
import type { AgentContext } from '../context.js'
import type { Reason } from '../run-result.js'
import { closeCall } from './update-transcript.js'

/** The reason that a call which a cap refuses was refused for. */
const reasonByCap: Record<CallCap, Reason> = {
  run: 'max_tool_calls',
  response: 'max_tool_calls_per_response',
  tool: 'max_calls',
}

/** Refuses the calls of a response that are more than the run, a response, or their tools may have; undefined without caps. */
export function capCalls(
  context: AgentContext,
  now: number,
  emit: (announcement: EmittedEvent) => void,
): Pick<AgentContext, 'calls' | 'callCounts'> | undefined {
  const caps = findCaps(context)
  if (caps === null) return undefined
  // A call that was refused before uses nothing up, nor does one that only loads its tool.
  const counted = context.calls.filter(({ result, unloaded }) => result === undefined && !unloaded)
  const { counts, met } = countCalls(
    context.callCounts ?? noCallCounts,
    counted.map(({ name }) => name),
    caps,
  )
  const refuse = (call: BatchCall, cap: CallCap): BatchCall => {
    const most = (cap === 'tool' ? caps.tool(call.name) : caps[cap]) ?? 0
    const content = formatCapMessage(cap, call.name, most)
    const result: ToolResult = { status: 'blocked', content, durationMs: 0, refusedBy: reasonByCap[cap] }
    return closeCall(call, result, now, emit)
  }
  const capByCall = new Map(counted.map((call, i) => [call, met[i] ?? null]))
  const calls = context.calls.map((call) => {
    const cap = capByCall.get(call) ?? null
    return cap === null ? call : refuse(call, cap)
  })
  return { calls, callCounts: counts }
}

/** Null where nothing caps any of these calls. */
function findCaps({ config, tools, calls }: AgentContext): CallCaps | null {
  // A log of an older version has no such limits.
  const { maxToolCalls: run = null, maxToolCallsPerResponse: response = null } = config.limits as Partial<
    AgentContext['config']['limits']
  >
  const tool = (name: string): number | null =>
    Object.hasOwn(tools, name) ? (tools[name]?.maxCalls ?? null) : null
  const isCapped = run !== null || response !== null || calls.some(({ name }) => tool(name) !== null)
  return isCapped ? { run, response, tool } : null
}
