import type { ToolCall } from '../../../machines/agent/messages.js'
import type { CallNeeds, ModelOutput } from '../../../machines/agent/model-response.js'
import type { Clock } from '../base/clock.js'
import { CallAbort, runWithTimeout } from '../base/abort.js'
import { parseArguments } from './parse-arguments.js'
import type { Tool } from './tool.js'
import type { ToolSet } from './tool-set.js'

export interface PrepareOptions {
  /** The app's context object. */
  context: unknown
  /** Default timeout in milliseconds; 0 means none. */
  defaultTimeoutMs: number
  clock: Clock
  /** Whether a call of this tool only loads it. */
  isUnloaded?: ((name: string) => boolean) | undefined
  /** Whether every call that is not read-only needs approval: see `ForkTerms`. */
  askFirst?: boolean | undefined
}

type PreparedCall = Omit<ModelOutput['calls'][number], 'id'>

/**
 * Decides who must act on each call before it runs. Calls that cannot run (unknown tool, invalid arguments) become
 * error results without approval, and so do calls whose `needsApproval` times out (`approvalTimedOut`). Never throws or
 * rejects; returns a promise only if a check is asynchronous.
 */
export function prepareCalls(
  calls: readonly ToolCall[],
  tools: ToolSet,
  options: PrepareOptions,
): ModelOutput['calls'] | Promise<ModelOutput['calls']> {
  const prepared = calls.map((call) => prepareInTime(call, tools, options))
  if (prepared.every(isKnown)) return toPreparedCalls(calls, prepared)
  return Promise.all(prepared.map(async (one) => one)).then((settled) => toPreparedCalls(calls, settled))
}

function isKnown(prepared: PreparedCall | Promise<PreparedCall>): prepared is PreparedCall {
  return !(prepared instanceof Promise)
}

function toPreparedCalls(
  calls: readonly ToolCall[],
  prepared: readonly PreparedCall[],
): ModelOutput['calls'] {
  return calls.map(({ id }, index) => ({ id, ...(prepared[index] ?? { needs: 'approval' }) }))
}

/** Timeout of an approval decision. Tools with `timeoutMs: 0` use the default. */
export function getDecisionTimeout(tool: Tool, defaultTimeoutMs: number): number {
  return tool.timeoutMs || defaultTimeoutMs
}

function prepareInTime(
  call: ToolCall,
  tools: ToolSet,
  options: PrepareOptions,
): PreparedCall | Promise<PreparedCall> {
  // The provider asks for approval, which only a person may give.
  if (call.hosted) return { needs: 'approval' }
  const tool = tools.get(call.function.name)
  // Most tools do not need their arguments to be parsed yet.
  if (tool === undefined) return { needs: 'nobody' }
  const asksFirst = options.askFirst === true && !tool.readOnly
  if (!tool.client && tool.needsApproval === false && !asksFirst) return { needs: 'nobody' }
  if (options.isUnloaded?.(tool.name)) return { needs: 'nobody' }
  const decide = async (): Promise<PreparedCall> => ({
    needs: await decideNeeds(call, tool, options.context, asksFirst),
  })
  const timeoutMs = getDecisionTimeout(tool, options.defaultTimeoutMs)
  if (timeoutMs === 0) return decide()
  const timedOut = (): PreparedCall => ({ needs: 'nobody', approvalTimedOut: true })
  return runWithTimeout({ timeoutMs, clock: options.clock, abort: new CallAbort(), timedOut }, decide)
}

async function decideNeeds(
  call: ToolCall,
  tool: Tool,
  context: unknown,
  asksFirst: boolean,
): Promise<CallNeeds> {
  const parsed = await parseArguments(tool, call.function.arguments)
  if (!parsed.ok) return 'nobody'
  if (tool.client) return 'client'
  return asksFirst || (await needsPerson(tool, parsed.input, context)) ? 'approval' : 'nobody'
}

/** Whether a call with this validated input needs approval. */
export async function needsPerson(tool: Tool, input: unknown, context: unknown): Promise<boolean> {
  if (typeof tool.needsApproval === 'boolean') return tool.needsApproval
  try {
    const answer: unknown = await tool.needsApproval(input, { context })
    // Anything but `false` asks, so that a predicate that returns nothing does not approve calls.
    return answer !== false
  } catch {
    return true
  }
}
