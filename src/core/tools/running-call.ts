import {
  type ToolResult,
  type BatchCall,
  type ResultStatus,
  type ToolErrorKind,
  toResult,
} from '../../../machines/agent/batch-calls.js'
import { CallAbort, attachSignal, timeoutError } from '../base/abort.js'
import { fingerprintCall } from '../../../guards/lib/fingerprint.js'
import type { Json } from '../../../machines/agent/json.js'
import type { Clock } from '../base/clock.js'
import { Ask, rememberAsked, SkillOutcome, Sleep } from './tool-outcomes.js'
import type { Delegate, Tool, ToolExecution, ToolSearch } from './tool.js'
import { classifyToolError, findPublicMessage } from './tool-error.js'
import { rememberThrown } from '../base/errors.js'
import { limitText, sortByNearness } from '../base/text.js'
import { type ParsedArguments, parseArguments } from './parse-arguments.js'
import { getDecisionTimeout } from './prepare-calls.js'
import { toJson, readProperty } from '../base/json.js'
import type { SkillChange } from '../../../machines/agent/skills.js'
import { formatResult } from './tool-content.js'
import type { ToolSet } from './tool-set.js'
import type { RunTelemetry } from '../telemetry/telemetry.js'

export type RunnableCall = Pick<
  BatchCall,
  'id' | 'name' | 'arguments' | 'approvalTimedOut' | 'hosted' | 'unloaded' | 'handle' | 'questions' | 'memo'
>

export interface CallHost {
  tools: ToolSet
  /** In milliseconds. 0 means no timeout. */
  defaultTimeoutMs: number
  maxResultChars: number
  clock: Clock
  context: unknown
  runId: string
  sessionId: string
  /** The id of the batch, which stays the same on resume. Call ids are unique only within a response. */
  batchId: string
  onProgress: (callId: string, name: string, value: Json) => void
  onLoad?: (callId: string, names: readonly string[]) => void
  /** Called before the result. */
  onSkillChange?: (callId: string, change: SkillChange) => void
  /** Resolves once the handle is durable. */
  onHandle?: (callId: string, handle: Json) => Promise<void>
  /**
   * Lets a call wait for people and returns null, or returns the call's result if the call may not ask. Absent if
   * asking is not supported. Never rejects.
   */
  onAsk?: (call: RunnableCall, ask: Ask) => Promise<ToolResult | null>
  /** Called before the result. */
  onHandoff?: (callId: string, to: string) => void
  readonly telemetry?: Pick<RunTelemetry, 'around'> | undefined
  /** Called once, but never while the call is being started. The result is null if the call waits. */
  onCallEnd(call: RunningCall, result: ToolResult | null): void
  /** Runs a sub-agent. Resolves with null if the sub-agent waits. Never rejects. */
  delegate?: (
    tool: Tool,
    delegate: Delegate,
    input: unknown,
    call: RunnableCall,
  ) => Promise<ToolResult | null>
}

/**
 * A running call. Every outcome becomes one result for the model, unless the call waits. Keeps all state of the call in
 * one object, because thousands of runs may be parked in tool calls.
 */
export class RunningCall {
  readonly call: RunnableCall
  readonly #host: CallHost
  readonly #abort = new CallAbort()
  #timer: unknown
  #startedAt: number | undefined
  #isOver = false

  constructor(call: RunnableCall, host: CallHost) {
    this.call = call
    this.#host = host
    const tool = host.tools.get(call.name)
    const isReady = tool && !call.hosted && !call.unloaded && !call.approvalTimedOut
    if (isReady) this.#start(tool)
    else queueMicrotask(() => this.#end(this.#toUnstartedResult(tool)))
  }

  /** Aborts the tool's signal without calling `onCallEnd`. */
  stop(reason: unknown): void {
    this.#isOver = true
    this.#clearTimer()
    this.#abort.abort(reason)
  }

  #start(tool: Tool): void {
    const { clock, defaultTimeoutMs } = this.#host
    const timeoutMs = tool.timeoutMs ?? defaultTimeoutMs
    if (timeoutMs > 0) this.#timer = clock.setTimeout(() => this.#timeOut(tool, timeoutMs), timeoutMs)
    void Promise.resolve(parseArguments(tool, this.call.arguments)).then((parsed) =>
      this.#execute(tool, parsed),
    )
  }

  #measure<Outcome>({ description }: Tool, work: () => Outcome): Outcome {
    const { telemetry } = this.#host
    const step = { type: 'tool_execution', callId: this.call.id, description } as const
    return telemetry === undefined ? work() : telemetry.around(step, work)
  }

  #execute(tool: Tool, parsed: ParsedArguments): void {
    if (this.#isOver) return
    if (!parsed.ok) return this.#end(this.#toFailure('invalid_arguments', parsed.message))
    const { input } = parsed
    const { delegate } = tool
    if (delegate && this.#host.delegate) {
      const running = this.#measure(tool, () => this.#host.delegate?.(tool, delegate, input, this.call))
      return void running?.then((result) => this.#end(result))
    }
    if (tool.execute === undefined) {
      const message = `The tool '${tool.name}' is executed by the run's caller, which returned no output.`
      return this.#end(this.#toFailure('error', message, 'failed'))
    }
    this.#startedAt = this.#host.clock.now()
    try {
      Promise.resolve(this.#measure(tool, () => this.#callTool(tool, input))).then(
        (value) => this.#endWithValue(tool, value),
        (error: unknown) => this.#endWithError(tool, error),
      )
    } catch (error) {
      this.#endWithError(tool, error)
    }
  }

  #callTool(tool: Tool, input: unknown): unknown {
    if (!tool.search) return tool.execute?.(input, this.#createExecution(tool))
    return tool.search.find(input, {
      deferred: this.#host.tools.deferred,
      maxChars: this.#host.maxResultChars,
      load: (names) => this.#load(names),
    })
  }

  #load(names: readonly string[]): void {
    if (!this.#isOver && names.length > 0) this.#host.onLoad?.(this.call.id, names)
  }

  #toUnstartedResult(tool: Tool | undefined): ToolResult {
    const { name, hosted, arguments: text, unloaded } = this.call
    const { tools, defaultTimeoutMs } = this.#host
    if (hosted) {
      // The hash lets guards distinguish calls.
      const which = fingerprintCall(name, text).slice(0, 8)
      return toResult('ok', `Approved: the provider executes it (#${which}).`)
    }
    if (tool === undefined) return this.#toFailure('unknown_tool', formatUnknownTool(name, tools.names))
    if (unloaded) {
      // The model wrote the arguments without the schema.
      this.#load([name])
      return this.#toFailure('not_loaded', formatNotLoaded(tool, tools.search))
    }
    const limitMs = getDecisionTimeout(tool, defaultTimeoutMs)
    const message = `The tool '${name}' was not called: needsApproval did not return within ${limitMs} ms.`
    return this.#toFailure('timeout', message, 'transient', limitMs)
  }

  #createExecution({ keepsHandle }: Tool): ToolExecution {
    const { runId, sessionId, batchId, context } = this.#host
    const { id: callId, handle } = this.call
    const execution: Omit<ToolExecution, 'signal'> = {
      callId,
      runId,
      sessionId,
      idempotencyKey: `${batchId}:${callId}`,
      context,
      progress: (progress) => this.#reportProgress(progress),
      ...(keepsHandle && {
        ...(handle !== undefined && { handle }),
        keepHandle: (stored: unknown) => this.#keepHandle(stored),
      }),
    }
    const attached = attachSignal(execution, this.#abort)
    if (this.call.questions) rememberAsked(attached, this.call)
    return attached
  }

  #reportProgress(progress: unknown): void {
    if (this.#isOver) return
    try {
      this.#host.onProgress(this.call.id, this.call.name, toJson(progress))
    } catch {
      // Errors in a listener must not make the tool fail.
    }
  }

  async #keepHandle(handle: unknown): Promise<void> {
    if (!this.#isOver) await this.#host.onHandle?.(this.call.id, toJson(handle))
  }

  #endWithValue({ handoff }: Tool, value: unknown): void {
    if (this.#isOver) return
    if (handoff) this.#host.onHandoff?.(this.call.id, handoff.to)
    if (value instanceof Ask && this.#host.onAsk) {
      void this.#host.onAsk(this.call, value).then((result) => this.#end(result))
      return
    }
    const succeed = (result: Omit<ToolResult, 'status' | 'durationMs'>): void =>
      this.#end({ status: 'ok', durationMs: this.#getDuration(), ...result })
    if (value instanceof Sleep) succeed({ content: value.describe(this.#host.clock.now()), wakeAt: value.at })
    else if (value instanceof SkillOutcome) {
      this.#host.onSkillChange?.(this.call.id, value.change)
      // The size of skills is already limited, and skills must be read in full.
      succeed({ content: value.text })
    } else succeed(formatResult(value, this.#host.maxResultChars))
  }

  #endWithError(tool: Tool, error: unknown): void {
    if (this.#isOver) return
    const { kind, message: words } = classifyToolError(error)
    const lacksContext = this.#host.context === undefined && readsContext(tool, error)
    const message = lacksContext ? `${words}. ${contextHint}` : words
    const status = kind === 'policy_denied' ? 'denied' : 'error'
    const publicMessage = findPublicMessage(error)
    const failure = {
      ...this.#toFailure(status, `The tool '${tool.name}' ${explanations[kind]}: ${message}`, kind),
      ...(publicMessage !== undefined && {
        publicMessage: limitText(publicMessage, this.#host.maxResultChars).content,
      }),
    }
    this.#end(rememberThrown(failure, error))
  }

  /** Ends the call before aborting, so that the tool cannot return a result. */
  #timeOut({ name, readOnly }: Tool, timeoutMs: number): void {
    const doubt = readOnly ? '' : ' It may still have taken effect. Check before you call it again.'
    const message = `The tool '${name}' did not finish within ${timeoutMs} ms and was abandoned.${doubt}`
    this.#end(this.#toFailure('timeout', message, 'transient', timeoutMs))
    this.#abort.abort(timeoutError('The call', timeoutMs))
  }

  #toFailure(
    status: ResultStatus,
    message: string,
    errorKind?: ToolErrorKind,
    durationMs = this.#getDuration(),
  ): ToolResult {
    return {
      status,
      ...(errorKind && { errorKind }),
      durationMs,
      ...limitText(message, this.#host.maxResultChars),
    }
  }

  #getDuration(): number {
    return this.#startedAt === undefined ? 0 : Math.max(0, this.#host.clock.now() - this.#startedAt)
  }

  #end(result: ToolResult | null): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#clearTimer()
    this.#host.onCallEnd(this, result)
  }

  #clearTimer(): void {
    if (this.#timer !== undefined) this.#host.clock.clearTimeout(this.#timer)
  }
}

const contextHint = 'The tool reads `context`, but this run has none. Pass it: run(input, { context }).'

function readsContext({ execute }: Tool, error: unknown): boolean {
  const message = readProperty(error, 'name') === 'TypeError' && readProperty(error, 'message')
  if (typeof message !== 'string' || !/\bundefined\b/.test(message)) return false
  return Function.prototype.toString.call(execute).includes('context')
}

const explanations: Record<ToolErrorKind, string> = {
  failed: 'failed',
  transient: 'failed, possibly temporarily',
  policy_denied: 'refused this call because of its policy',
}

/**
 * Formats the result of a call whose tool was not loaded. Also used if the tool is no longer deferred, because the
 * decision was made earlier.
 */
function formatNotLoaded({ name, description, parameters }: Tool, search: ToolSearch | undefined): string {
  const how = search?.loading === 'dispatch' ? 'with call_tool' : 'again'
  const spec = JSON.stringify({ name, description, parameters })
  return `The tool '${name}' was not loaded, so this call was not executed. It is loaded now. Call it ${how} with arguments that match its parameters.\n${spec}`
}

const mostNamed = 20

function formatUnknownTool(wanted: string, names: readonly string[]): string {
  const shown = wanted.length > 100 ? `${wanted.slice(0, 100)}…` : wanted
  if (names.length === 0) return `There is no tool '${shown}': this agent has no tools. Answer without them.`
  const near = sortByNearness(wanted, names).slice(0, mostNamed).join(', ')
  const rest = names.length > mostNamed ? ` and ${names.length - mostNamed} more` : ''
  return `There is no tool '${shown}'. The tools are: ${near}${rest}.`
}
