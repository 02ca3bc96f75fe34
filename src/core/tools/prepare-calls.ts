import type { ToolCall } from '../../../machines/agent/messages.js'
import type { PolicyVerdict } from '../../../machines/agent/approvals.js'
import type { ModelOutput } from '../../../machines/agent/model-response.js'
import type { Clock } from '../base/clock.js'
import { runWithTimeout } from '../base/abort.js'
import { prepareByPolicies, readDecision } from './ask-policies.js'
import { parseArguments } from './parse-arguments.js'
import type { PolicyScope, PreparedCall } from './policy.js'
import type { Tool } from './tool.js'
import type { ToolSet } from './tool-set.js'

export interface PrepareOptions {
  context: unknown
  /** In milliseconds. 0 means no timeout. */
  defaultTimeoutMs: number
  clock: Clock
  /** Whether a call to this tool only loads it. */
  isUnloaded?: ((name: string) => boolean) | undefined
  /** Whether all calls that are not read-only need approval. See `ForkTerms`. */
  askFirst?: boolean | undefined
  policies?: PolicyScope | undefined
}

/**
 * Decides who must act on each call before it runs. Calls that cannot run (unknown tool, invalid arguments) become
 * error results without approval, as do calls whose `needsApproval` times out (`approvalTimedOut`). Never throws or
 * rejects. Returns a promise only if a check is asynchronous.
 */
export function prepareCalls(
  calls: readonly ToolCall[],
  tools: ToolSet,
  options: PrepareOptions,
): ModelOutput['calls'] | Promise<ModelOutput['calls']> {
  const { policies, clock, isUnloaded } = options
  const prepared = calls.map((call): PreparedCall | Promise<PreparedCall> => {
    const own = prepareByTool(call, tools, options)
    if (!policies || (!call.hosted && isUnloaded?.(call.function.name))) return own
    return prepareByPolicies(call, tools, own, { policies, clock })
  })
  const toCalls = (settled: readonly PreparedCall[]): ModelOutput['calls'] =>
    calls.map(({ id }, index) => ({ id, ...(settled[index] ?? { needs: 'approval' }) }))
  if (prepared.every((one): one is PreparedCall => !(one instanceof Promise))) return toCalls(prepared)
  return Promise.all(prepared.map(async (one) => one)).then(toCalls)
}

/** Timeout for an approval decision. Tools with `timeoutMs: 0` use the default. */
export function getDecisionTimeout(tool: Tool, defaultTimeoutMs: number): number {
  return tool.timeoutMs || defaultTimeoutMs
}

function prepareByTool(
  call: ToolCall,
  tools: ToolSet,
  options: PrepareOptions,
): PreparedCall | Promise<PreparedCall> {
  // The provider asks for approval, which only a person may give.
  if (call.hosted) return { needs: 'approval' }
  const tool = tools.get(call.function.name)
  // The arguments of most tools do not have to be parsed yet.
  if (tool === undefined) return { needs: 'nobody' }
  const asksFirst = options.askFirst === true && !tool.readOnly
  if (!tool.client && tool.needsApproval === false && !asksFirst && !options.policies)
    return { needs: 'nobody' }
  if (options.isUnloaded?.(tool.name)) return { needs: 'nobody' }
  const decide = (): Promise<PreparedCall> => decideNeeds(call, tool, options.context, asksFirst)
  const timeoutMs = getDecisionTimeout(tool, options.defaultTimeoutMs)
  if (timeoutMs === 0) return decide()
  const timedOut = (): PreparedCall => ({ needs: 'nobody', approvalTimedOut: true })
  return runWithTimeout({ timeoutMs, clock: options.clock, timedOut }, decide)
}

async function decideNeeds(
  call: ToolCall,
  tool: Tool,
  context: unknown,
  asksFirst: boolean,
): Promise<PreparedCall> {
  const parsed = await parseArguments(tool, call.function.arguments)
  if (!parsed.ok) return { needs: 'nobody' }
  if (tool.client) return { needs: 'client' }
  const answer = await askTool(tool, parsed.input, context)
  const decisions = typeof answer === 'object' ? { decisions: [answer] } : {}
  if (typeof answer === 'object' && answer.decision === 'deny') return { needs: 'nobody', ...decisions }
  const asks = asksFirst || (typeof answer === 'object' ? answer.decision === 'ask' : answer)
  return { needs: asks ? 'approval' : 'nobody', ...decisions }
}

/** Whether a call with this validated input needs approval. Denied calls count as needing approval. */
export async function needsPerson(tool: Tool, input: unknown, context: unknown): Promise<boolean> {
  const answer = await askTool(tool, input, context)
  return typeof answer === 'object' ? answer.decision !== 'allow' : answer
}

async function askTool(tool: Tool, input: unknown, context: unknown): Promise<boolean | PolicyVerdict> {
  if (typeof tool.needsApproval === 'boolean') return tool.needsApproval
  try {
    const answer: unknown = await tool.needsApproval(input, { context })
    if (typeof answer === 'boolean') return answer
    const decision = readDecision(answer)
    // Any value except `false` requires approval, so that a predicate that returns nothing does not approve calls.
    return decision ? { policy: 'needsApproval', ...decision } : true
  } catch {
    return true
  }
}
