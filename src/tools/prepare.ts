import type { ToolCall } from '../../machines/agent/messages.js'
import type { CallNeeds } from '../../machines/agent/response.js'
import { parseArguments } from './parse-arguments.js'
import type { ToolSet } from './tool-set.js'

/**
 * Who has to act on each call before it can run, in the order of the calls. A call that cannot run anyway (unknown
 * tool, arguments that do not fit) needs nobody: it becomes an error result without bothering a person. Never rejects.
 */
export async function prepareCalls(
  calls: readonly ToolCall[],
  tools: ToolSet,
  context: unknown,
): Promise<{ id: string; needs: CallNeeds }[]> {
  const needs = await Promise.all(calls.map((call) => needsOf(call, tools, context)))
  return calls.map(({ id }, index) => ({ id, needs: needs[index] ?? 'approval' }))
}

async function needsOf(call: ToolCall, tools: ToolSet, context: unknown): Promise<CallNeeds> {
  const tool = tools.get(call.function.name)
  // Most tools: their arguments need not be read before they run.
  if (tool === undefined || (!tool.client && tool.needsApproval === false)) return 'nobody'
  const parsed = await parseArguments(tool, call.function.arguments)
  if (!parsed.ok) return 'nobody'
  if (tool.client) return 'client'
  if (typeof tool.needsApproval === 'boolean') return 'approval'
  try {
    const answer: unknown = await tool.needsApproval(parsed.input, { context })
    // Anything but a plain false asks: a predicate that forgets to return must not wave calls through.
    return answer === false ? 'nobody' : 'approval'
  } catch {
    return 'approval'
  }
}
