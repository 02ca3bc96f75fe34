import type { Json } from '../../../machines/agent/json.js'
import type { BatchCall, ResultStatus, ToolErrorKind, ToolResult } from '../../../machines/agent/results.js'
import type { Clock } from '../base/clock.js'
import type { Delegate, Tool } from './tool.js'
import type { CallAbort } from '../base/abort.js'
import { classifyToolError } from './classify-tool-error.js'
import { formatValue, limit } from '../base/format-value.js'
import { nearestFirst } from '../base/nearest.js'
import { parseArguments } from './parse-arguments.js'
import { decisionTimeout } from './prepare.js'
import { toJson } from '../base/to-json.js'
import type { ToolSet } from './tool-set.js'
import { withTimeout } from '../base/time-limit.js'

export type RunnableCall = Pick<BatchCall, 'id' | 'name' | 'arguments' | 'undecided'>

export interface RunCallOptions {
  tools: ToolSet
  /** Milliseconds, for tools without a `timeoutMs` of their own. 0 = off. */
  defaultTimeoutMs: number
  /** Characters of a result. */
  maxResultChars: number
  clock: Clock
  /** The app's own object. */
  context: unknown
  runId: string
  sessionId: string
  /** Unique to the batch and the same when it is resumed: ids of calls are unique only within one response. */
  batchId: string
  onProgress: (callId: string, name: string, value: Json) => void
  /** Carries out the call of a sub-agent; null when it rests. Never rejects. */
  delegate?: (
    tool: Tool,
    delegate: Delegate,
    input: unknown,
    call: RunnableCall,
  ) => Promise<ToolResult | null>
}

/**
 * Executes one call. Whatever happens becomes one result that the model can read, but for a sub-agent that rests: null.
 * Never rejects.
 */
export function runCall(
  call: RunnableCall,
  options: RunCallOptions,
  abort: CallAbort,
): ToolResult | Promise<ToolResult | null> {
  const { tools, clock, defaultTimeoutMs, maxResultChars } = options
  const tool = tools.get(call.name)
  if (tool === undefined) {
    return {
      status: 'unknown_tool',
      durationMs: 0,
      ...limit(unknownTool(call.name, tools.names), maxResultChars),
    }
  }
  if (call.undecided) {
    const limitMs = decisionTimeout(tool, defaultTimeoutMs)
    const message = `The tool '${tool.name}' was not called: whether a person has to approve it was not known after ${limitMs} ms.`
    return {
      status: 'timeout',
      errorKind: 'transient',
      durationMs: limitMs,
      ...limit(message, maxResultChars),
    }
  }
  const timeoutMs = tool.timeoutMs ?? defaultTimeoutMs
  if (timeoutMs === 0) return attempt(tool, call, options, abort)
  const timedOut = (): ToolResult => ({
    status: 'timeout',
    errorKind: 'transient',
    durationMs: timeoutMs,
    ...limit(timeoutMessage(tool, timeoutMs), maxResultChars),
  })
  return withTimeout({ timeoutMs, clock, abort, timedOut }, () => attempt(tool, call, options, abort))
}

/** The call itself, without a time limit. */
async function attempt(
  tool: Tool,
  call: RunnableCall,
  options: RunCallOptions,
  abort: CallAbort,
): Promise<ToolResult | null> {
  const { clock, maxResultChars } = options
  let startedAt: number | undefined
  let ended = false
  const failure = (status: ResultStatus, message: string, errorKind?: ToolErrorKind): ToolResult => ({
    status,
    ...(errorKind && { errorKind }),
    durationMs: startedAt === undefined ? 0 : Math.max(0, clock.now() - startedAt),
    ...limit(message, maxResultChars),
  })
  try {
    const parsed = await parseArguments(tool, call.arguments)
    if (!parsed.ok) return failure('invalid_arguments', parsed.message)
    if (tool.delegate && options.delegate)
      return await options.delegate(tool, tool.delegate, parsed.input, call)
    if (tool.execute === undefined) {
      return failure(
        'error',
        `The tool '${tool.name}' is executed by the caller of the run, who gave no output.`,
        'failed',
      )
    }
    if (abort.aborted) return failure('not_executed', 'Not executed: the run was stopped.')
    startedAt = clock.now()
    const value = await tool.execute(parsed.input, {
      // Own and lazy: see CallAbort.
      get signal() {
        return abort.signal
      },
      callId: call.id,
      runId: options.runId,
      sessionId: options.sessionId,
      idempotencyKey: `${options.batchId}:${call.id}`,
      context: options.context,
      progress: (progress) => {
        if (ended || abort.aborted) return
        try {
          options.onProgress(call.id, call.name, toJson(progress))
        } catch {
          // A listener's mistake must not become the tool's.
        }
      },
    })
    return {
      status: 'ok',
      durationMs: Math.max(0, clock.now() - startedAt),
      ...formatValue(value, maxResultChars),
    }
  } catch (error) {
    const { kind, message } = classifyToolError(error)
    return failure(
      kind === 'policy_denied' ? 'denied' : 'error',
      explanations[kind](tool.name, message),
      kind,
    )
  } finally {
    ended = true
  }
}

const explanations: Record<ToolErrorKind, (name: string, message: string) => string> = {
  failed: (name, message) => `The tool '${name}' failed: ${message}`,
  transient: (name, message) => `The tool '${name}' failed, perhaps only for now: ${message}`,
  policy_denied: (name, message) => `The tool '${name}' refused this call by policy: ${message}`,
}

function timeoutMessage({ name, readOnly }: Tool, timeoutMs: number): string {
  const doubt = readOnly ? '' : ' It may have taken effect all the same: check before you call it again.'
  return `The tool '${name}' did not finish within ${timeoutMs} ms and was abandoned.${doubt}`
}

/** Tools that an unknown name is answered with. */
const mostNamed = 20

function unknownTool(wanted: string, names: readonly string[]): string {
  const shown = wanted.length > 100 ? `${wanted.slice(0, 100)}…` : wanted
  if (names.length === 0) return `There is no tool '${shown}': this agent has no tools. Answer without them.`
  const near = nearestFirst(wanted, names).slice(0, mostNamed).join(', ')
  const rest = names.length > mostNamed ? ` and ${names.length - mostNamed} more` : ''
  return `There is no tool '${shown}'. The tools are: ${near}${rest}.`
}
