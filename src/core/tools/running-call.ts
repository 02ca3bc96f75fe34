import { fingerprintCall } from '../../../guards/lib/fingerprint.js'
import type { Json } from '../../../machines/agent/json.js'
import type {
  BatchCall,
  ResultStatus,
  ToolErrorKind,
  ToolResult,
} from '../../../machines/agent/batch-calls.js'
import type { Clock } from '../base/clock.js'
import { Ask, rememberAsked, SkillOutcome, Sleep } from './tool-outcomes.js'
import type { Delegate, Tool, ToolExecution, ToolSearch } from './tool.js'
import { CallAbort, attachSignal, timeoutError } from '../base/abort.js'
import { classifyToolError, findPublicMessage } from './tool-error.js'
import { rememberThrown } from '../base/errors.js'
import { limitText, sortByNearness } from '../base/text.js'
import { type ParsedArguments, parseArguments } from './parse-arguments.js'
import { getDecisionTimeout } from './prepare-calls.js'
import { toJson, readProperty } from '../base/json.js'
import type { SkillChange } from '../../../machines/agent/skills.js'
import { formatResult } from './tool-content.js'
import type { ToolSet } from './tool-set.js'
import type { TelemetryStepInfo, RunTelemetry } from '../telemetry/telemetry.js'

export type RunnableCall = Pick<
  BatchCall,
  'id' | 'name' | 'arguments' | 'undecided' | 'hosted' | 'unloaded' | 'handle' | 'questions' | 'memo'
>

/** What calls are carried out with; those of a batch share it. */
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
  /** A call loads deferred tools. Absent: none can. */
  onLoad?: (callId: string, names: readonly string[]) => void
  /** Told what the call of a skill's tool changes, before its result. */
  onSkillChange?: (callId: string, change: SkillChange) => void
  /** A call keeps what its tool goes on from in another process. Settles once that is durable. */
  onHandle?: (callId: string, handle: Json) => Promise<void>
  /** Lets a call rest that asks people: null. Or what it comes to, where it may not ask. Absent: none can. Never rejects. */
  onAsk?: (call: RunnableCall, ask: Ask) => Promise<ToolResult | null>
  /** Told that a call hands the conversation to another agent, before its result. */
  onHandoff?: (callId: string, to: string) => void
  /** What measures the run. */
  readonly telemetry?: Pick<RunTelemetry, 'around'> | undefined
  /** Carries out the call of a sub-agent; null when it rests. Never rejects. */
  delegate?: (
    tool: Tool,
    delegate: Delegate,
    input: unknown,
    call: RunnableCall,
  ) => Promise<ToolResult | null>
}

/** Receives the outcome of a call. */
export interface CallOwner {
  /** Told once, and never while the call is being started; null: it rests, for its tool or its sub-agent asks. */
  onCallEnd(call: RunningCall, result: ToolResult | null): void
}

/**
 * A call that is carried out. Whatever happens becomes one result that the model can read, but for a call that
 * rests. All that is known of it is here, because runs by the thousand may be parked in calls of tools.
 */
export class RunningCall {
  readonly call: RunnableCall
  readonly #options: RunCallOptions
  readonly #owner: CallOwner
  readonly #abort = new CallAbort()
  #timer: unknown
  #startedAt: number | undefined
  #isOver = false

  constructor(call: RunnableCall, options: RunCallOptions, owner: CallOwner) {
    this.call = call
    this.#options = options
    this.#owner = owner
    const tool = options.tools.get(call.name)
    if (call.hosted) this.#endSoon(createApprovedResult(call))
    else if (tool === undefined)
      this.#endSoon(this.#toFailure('unknown_tool', formatUnknownTool(call.name, options.tools.names)))
    else if (call.unloaded) this.#loadSoon(tool)
    else if (call.undecided) this.#endSoon(this.#toUndecidedResult(tool))
    else this.#start(tool)
  }

  /** Stops the call: its tool's signal aborts, and its owner is not called. */
  stop(reason: unknown): void {
    this.#isOver = true
    this.#clearTimer()
    this.#abort.abort(reason)
  }

  #start(tool: Tool): void {
    const { clock, defaultTimeoutMs } = this.#options
    const timeoutMs = tool.timeoutMs ?? defaultTimeoutMs
    if (timeoutMs > 0) this.#timer = clock.setTimeout(() => this.#timeOut(tool, timeoutMs), timeoutMs)
    void Promise.resolve(parseArguments(tool, this.call.arguments)).then((parsed) =>
      this.#executeParsed(tool, parsed),
    )
  }

  #executeParsed(tool: Tool, parsed: ParsedArguments): void {
    if (this.#isOver) return
    const { delegate } = tool
    if (!parsed.ok) this.#end(this.#toFailure('invalid_arguments', parsed.message))
    else if (delegate && this.#options.delegate) {
      void this.#delegate(tool, delegate, parsed.input)?.then((result) => this.#end(result))
    } else this.#execute(tool, parsed.input)
  }

  #delegate(tool: Tool, delegate: Delegate, input: unknown): Promise<ToolResult | null> | undefined {
    const { telemetry } = this.#options
    if (telemetry === undefined) return this.#options.delegate?.(tool, delegate, input, this.call)
    return telemetry.around(toMeasuredStep(tool, this.call.id), () =>
      this.#options.delegate?.(tool, delegate, input, this.call),
    )
  }

  #execute(tool: Tool, input: unknown): void {
    if (tool.execute === undefined) {
      const message = `The tool '${tool.name}' is executed by the caller of the run, who gave no output.`
      return this.#end(this.#toFailure('error', message, 'failed'))
    }
    this.#startedAt = this.#options.clock.now()
    try {
      Promise.resolve(this.#callTool(tool, input)).then(
        (value) => this.#endWithValue(tool, value),
        (error: unknown) => this.#endWithError(tool, error),
      )
    } catch (error) {
      this.#endWithError(tool, error)
    }
  }

  #callTool(tool: Tool, input: unknown): unknown {
    const { telemetry } = this.#options
    const execute = (): unknown =>
      tool.search
        ? tool.search.find(input, {
            deferred: this.#options.tools.deferred,
            maxChars: this.#options.maxResultChars,
            load: (names) => this.#load(names),
          })
        : tool.execute?.(input, this.#createExecution(tool))
    return telemetry === undefined ? execute() : telemetry.around(toMeasuredStep(tool, this.call.id), execute)
  }

  #load(names: readonly string[]): void {
    if (!this.#isOver && names.length > 0) this.#options.onLoad?.(this.call.id, names)
  }

  /** The call does not run: what it says was written without the schema. */
  #loadSoon(tool: Tool): void {
    queueMicrotask(() => {
      this.#load([tool.name])
      this.#end(this.#toFailure('not_loaded', formatNotLoaded(tool, this.#options.tools.search)))
    })
  }

  /** What the tool is told besides its input. */
  #createExecution({ keepsHandle }: Tool): ToolExecution {
    const { runId, sessionId, batchId, context } = this.#options
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
        keepHandle: (kept: unknown) => this.#keepHandle(kept),
      }),
    }
    const attached = attachSignal(execution, this.#abort)
    if (this.call.questions) rememberAsked(attached, this.call)
    return attached
  }

  #reportProgress(progress: unknown): void {
    if (this.#isOver) return
    try {
      this.#options.onProgress(this.call.id, this.call.name, toJson(progress))
    } catch {
      // A listener's mistake must not become the tool's.
    }
  }

  async #keepHandle(handle: unknown): Promise<void> {
    if (!this.#isOver) await this.#options.onHandle?.(this.call.id, toJson(handle))
  }

  #endWithValue({ handoff }: Tool, value: unknown): void {
    if (this.#isOver) return
    if (handoff) this.#options.onHandoff?.(this.call.id, handoff.to)
    if (value instanceof Sleep) {
      const content = value.describe(this.#options.clock.now())
      return this.#end({ status: 'ok', durationMs: this.#getDuration(), content, wakeAt: value.at })
    }
    if (value instanceof Ask && this.#options.onAsk) {
      void this.#options.onAsk(this.call, value).then((result) => this.#end(result))
      return
    }
    if (value instanceof SkillOutcome) {
      this.#options.onSkillChange?.(this.call.id, value.change)
      // A skill is bounded where it is read: the model reads all of it.
      return this.#end({ status: 'ok', durationMs: this.#getDuration(), content: value.text })
    }
    this.#end({
      status: 'ok',
      durationMs: this.#getDuration(),
      ...formatResult(value, this.#options.maxResultChars),
    })
  }

  #endWithError(tool: Tool, error: unknown): void {
    if (this.#isOver) return
    const { kind, message: words } = classifyToolError(error)
    const lacksContext = this.#options.context === undefined && readsContext(tool, error)
    const message = lacksContext ? `${words}. ${contextHint}` : words
    const status = kind === 'policy_denied' ? 'denied' : 'error'
    const said = findPublicMessage(error)
    const toPages =
      said === undefined ? {} : { publicMessage: limitText(said, this.#options.maxResultChars).content }
    const failure = { ...this.#toFailure(status, explanations[kind](tool.name, message), kind), ...toPages }
    this.#end(rememberThrown(failure, error))
  }

  /** Before the abort: a tool that heeds it must not get its say first. */
  #timeOut(tool: Tool, timeoutMs: number): void {
    this.#end(this.#toFailure('timeout', formatTimeout(tool, timeoutMs), 'transient', timeoutMs))
    this.#abort.abort(timeoutError('The call', timeoutMs))
  }

  #toUndecidedResult(tool: Tool): ToolResult {
    const limitMs = getDecisionTimeout(tool, this.#options.defaultTimeoutMs)
    const message = `The tool '${tool.name}' was not called: whether a person has to approve it was not known after ${limitMs} ms.`
    return this.#toFailure('timeout', message, 'transient', limitMs)
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
      ...limitText(message, this.#options.maxResultChars),
    }
  }

  #getDuration(): number {
    return this.#startedAt === undefined ? 0 : Math.max(0, this.#options.clock.now() - this.#startedAt)
  }

  #endSoon(result: ToolResult): void {
    queueMicrotask(() => this.#end(result))
  }

  #end(result: ToolResult | null): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#clearTimer()
    this.#owner.onCallEnd(this, result)
  }

  #clearTimer(): void {
    if (this.#timer !== undefined) this.#options.clock.clearTimeout(this.#timer)
  }
}

const contextHint = 'The tool reads `context`, and this run has none: pass it, run(input, { context }).'

/** Whether a tool failed because it read something of the `context` that its run does not have. */
function readsContext({ execute }: Tool, error: unknown): boolean {
  const message = readProperty(error, 'name') === 'TypeError' && readProperty(error, 'message')
  if (typeof message !== 'string' || !/\bundefined\b/.test(message)) return false
  return Function.prototype.toString.call(execute).includes('context')
}

/** All that is done here of a call that the provider carries out. The guards tell one from another by what is read. */
function createApprovedResult({ name, arguments: text }: RunnableCall): ToolResult {
  const which = fingerprintCall(name, text).slice(0, 8)
  return { status: 'ok', content: `Approved: the provider carries it out (#${which}).`, durationMs: 0 }
}

const toMeasuredStep = ({ description }: Tool, callId: string): TelemetryStepInfo => ({
  type: 'tool_execution',
  callId,
  description,
})

const explanations: Record<ToolErrorKind, (name: string, message: string) => string> = {
  failed: (name, message) => `The tool '${name}' failed: ${message}`,
  transient: (name, message) => `The tool '${name}' failed, perhaps only for now: ${message}`,
  policy_denied: (name, message) => `The tool '${name}' refused this call by policy: ${message}`,
}

function formatTimeout({ name, readOnly }: Tool, timeoutMs: number): string {
  const doubt = readOnly ? '' : ' It may have taken effect all the same: check before you call it again.'
  return `The tool '${name}' did not finish within ${timeoutMs} ms and was abandoned.${doubt}`
}

/** Also for a program whose tool is not deferred any more: that the call does not run was decided before. */
function formatNotLoaded({ name, description, parameters }: Tool, search: ToolSearch | undefined): string {
  const how = search?.loading === 'dispatch' ? 'by call_tool' : 'again'
  const spec = JSON.stringify({ name, description, parameters })
  return `The tool '${name}' was not loaded, so this call was not carried out. It is loaded now: call it ${how}, with arguments that fit its parameters.\n${spec}`
}

/** Tools that an unknown name is answered with. */
const mostNamed = 20

function formatUnknownTool(wanted: string, names: readonly string[]): string {
  const shown = wanted.length > 100 ? `${wanted.slice(0, 100)}…` : wanted
  if (names.length === 0) return `There is no tool '${shown}': this agent has no tools. Answer without them.`
  const near = sortByNearness(wanted, names).slice(0, mostNamed).join(', ')
  const rest = names.length > mostNamed ? ` and ${names.length - mostNamed} more` : ''
  return `There is no tool '${shown}'. The tools are: ${near}${rest}.`
}
