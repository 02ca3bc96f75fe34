import { getCallStepId, type StepWork } from '../live/open-steps.js'
import { loadOnce, startsPerTick, yieldToEventLoop } from '../base/platform.js'
import { haltsBatch } from '../../../machines/agent/questions.js'
import { createExpired, getExpiry, isLate } from '../../../machines/agent/approvals.js'
import { isGrantEnded } from '../../../machines/agent/grants.js'
import { isInDoubt, isUnderWay } from '../../../machines/agent/call-state.js'
import type { SkillChange } from '../../../machines/agent/skills.js'
import type { Json } from '../../../machines/agent/json.js'
import { type BatchCall, type ToolResult, toResult } from '../../../machines/agent/batch-calls.js'
import { type Ask, toQuestions } from '../tools/tool-outcomes.js'
import { type CallHost, type RunnableCall, RunningCall } from '../tools/running-call.js'
import { digestTool } from '../sessions/grant-input.js'
import type { ToolSet } from '../tools/tool-set.js'
import { type CallAbort, createLeftReason } from '../base/abort.js'
import type { Clock } from '../base/clock.js'
import type { BatchScope, SubAgentBatch } from './sub-agent-batch.js'
import { type AgentParts, getTraits, getSpeakerTools } from '../live/agent-parts.js'
import type { SafeTelemetry } from '../telemetry/safe-telemetry.js'
import type { ToolStepResponse } from '../../../machines/agent/announcements.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import { attachCause, describeError, hasThrown } from '../base/errors.js'

export const loadScreening = loadOnce(() => import('./screening-effects.js'))
// Loaded only by batches with a sub-agent.
const loadSubAgents = loadOnce(() => import('./sub-agent-batch.js'))

/** Runs the calls of a batch in order, with limited concurrency, and reports each one to the machine. */
export class ToolBatch implements CallHost {
  readonly #parts: AgentParts
  readonly #scope: BatchScope
  readonly #calls: readonly BatchCall[]
  readonly #since: number
  readonly tools: ToolSet
  readonly clock: Clock
  readonly context: unknown
  readonly runId: string
  readonly sessionId: string
  readonly defaultTimeoutMs: number
  readonly maxResultChars: number
  /** After an abort, no call starts and none is reported. */
  readonly #abort: CallAbort
  readonly #mostAtOnce: number
  readonly #running: RunningCall[] = []
  #begun = 0
  #ended = 0
  /** Calls that are about to start. */
  #starting = 0
  #begunThisTurn = 0
  #isPaused = false
  #subAgentBatch: SubAgentBatch | undefined

  constructor(parts: AgentParts, scope: BatchScope) {
    const { abort, context, runtime } = scope
    const { calls, config, runId, sessionId } = context
    this.#parts = parts
    this.#scope = scope
    this.#calls = calls.every(isUnderWay) ? calls : calls.filter(isUnderWay)
    this.#since = runtime.time.now()
    this.tools = parts.tools
    this.#abort = abort
    this.clock = runtime.clock
    this.context = runtime.binding.context
    this.runId = runId
    this.sessionId = sessionId
    this.#mostAtOnce = Math.max(1, Math.min(this.#calls.length, config.toolCalls.concurrency || 1))
    this.defaultTimeoutMs = config.toolCalls.timeoutMs
    this.maxResultChars = config.toolCalls.maxResultChars
  }

  async start(): Promise<void> {
    const { runtime } = this.#scope
    runtime.onHalt(() => this.#halt())
    await runtime.waitUntilDurable()
    // The usage of sub-agents counts toward the results of this batch.
    if (runtime.hasChildren) await this.#openSubAgents()
    this.startCalls()
  }

  /** Starts as many calls as may run. `isReady` applies to the first one. Tests call it without the wait of `start`. */
  startCalls(isReady = false): void {
    const { runtime, sendBack } = this.#scope
    while (
      !this.#abort.aborted &&
      !runtime.isHalted &&
      this.#running.length + this.#starting < this.#mostAtOnce
    ) {
      const call = this.#calls[this.#begun]
      if (call === undefined) {
        if (this.#starting + this.#running.length === 0) sendBack({ type: 'BATCH_DONE' })
        return
      }
      if (!isReady && this.#begunThisTurn >= startsPerTick) return void this.#pause()
      const ready = isReady ? undefined : runtime.waitUntilHeld()
      isReady = false
      if (ready) void this.#startAfter(ready)
      else this.#startCall(call)
    }
  }

  /** Yields to the event loop after a number of calls that completed synchronously. */
  async #pause(): Promise<void> {
    if (this.#isPaused) return
    this.#isPaused = true
    await yieldToEventLoop()
    this.#isPaused = false
    this.#begunThisTurn = 0
    this.startCalls()
  }

  async #startAfter(ready: Promise<void>): Promise<void> {
    this.#starting += 1
    await ready
    this.#starting -= 1
    this.startCalls(true)
  }

  #startCall(call: BatchCall): void {
    const { context, runtime, self } = this.#scope
    this.#begun += 1
    this.#begunThisTurn += 1
    const refusal = this.#refuse(call)
    if (refusal !== null) {
      if (refusal !== 'waits') this.#report(call.id, refusal)
      return
    }
    // Keeps the place of the call, because a subscriber may move a clock here, which ends and starts others.
    this.#starting += 1
    try {
      runtime.steps.start(self, new ToolStep(context, call))
      // The provider loaded the tool in the same answer that calls it.
      if (this.#parts.tools.isHosted?.(call.name)) this.onLoad(call.id, [call.name])
    } finally {
      this.#starting -= 1
    }
    // A subscriber may stop the batch here.
    if (!this.#abort.aborted) this.#running.push(new RunningCall(call, this))
  }

  onCallEnd(ended: RunningCall, result: ToolResult | null): void {
    if (this.#abort.aborted) return
    this.#running.splice(this.#running.indexOf(ended), 1)
    if (result !== null) this.#report(ended.call.id, result)
    this.startCalls()
  }

  /** Only the first call has an effect, because aborting creates an exception with a stack trace. */
  stop(): void {
    this.#subAgentBatch?.stop()
    if (this.#ended === this.#calls.length) return
    const reason = this.#scope.runtime.isLeft ? createLeftReason() : undefined
    this.#abort.abort(reason)
    for (const call of this.#running) call.stop(this.#abort.reason)
  }

  /**
   * Called when another process resumes the run. The log records the whole batch as started, so an event lists the
   * non-repeatable and expiring calls that have not started. The other process runs them.
   */
  #halt(): void {
    const { context, sendBack } = this.#scope
    const notStarted = this.#calls
      .slice(this.#begun)
      .filter((call) => isInDoubt(context, call) || call.expiresAt !== undefined || call.grant !== undefined)
    if (notStarted.length > 0) sendBack({ type: 'RELEASED', notStarted: notStarted.map(({ id }) => id) })
  }

  get telemetry(): SafeTelemetry | undefined {
    return this.#scope.runtime.telemetry
  }

  get batchId(): string {
    return `${this.runId}.${this.#scope.context.batchNumber}`
  }

  /** Runs a sub-agent's call as a step. A subscriber may stop the run when the step starts. */
  async delegate(...of: Parameters<SubAgentBatch['execute']>): Promise<ToolResult | null> {
    if (this.#abort.aborted) return null
    const opened =
      this.#subAgentBatch ??
      (await this.#openSubAgents().catch((error: unknown) => createLoadFailure('The sub-agent', error)))
    // The process that resumes the run opens the sub-agent.
    if (this.#scope.runtime.isHalted) return new Promise(() => undefined)
    if (this.#abort.aborted) return null
    return 'status' in opened ? opened : opened.execute(...of)
  }

  onProgress(callId: string, name: string, progress: Json): void {
    const { runtime, context } = this.#scope
    // Shields screen a result only when its tool has ended.
    if (context.features.resultShields) return
    runtime.emit({ type: 'tool_progress', callId, name, progress })
    runtime.emit({ type: 'step_progress', ...createToolStep(context, callId, name), progress })
  }

  onLoad(callId: string, names: readonly string[]): void {
    const { context, sendBack } = this.#scope
    const added = names.filter((name) => !context.loaded.includes(name))
    if (added.length > 0) sendBack({ type: 'TOOLS_LOADED', callId, names: added })
  }

  async onAsk(call: RunnableCall, ask: Ask): Promise<ToolResult | null> {
    const { id: callId } = call
    // Shields screen a question before people see it, just as they screen a result before the model reads it.
    if (this.#scope.context.features.resultShields && !(await this.#isCleared(call, ask))) return refusedToAsk
    this.#scope.sendBack({ type: 'CHILD_WAITING', callId, questions: toQuestions(call, ask), memo: ask.memo })
    return null
  }

  /** A question that a shield changed is not asked, because a form with gaps is meaningless. */
  async #isCleared({ id: callId, name: toolName }: RunnableCall, { elicitations }: Ask): Promise<boolean> {
    const text = JSON.stringify(elicitations)
    const { screenText } = await loadScreening()
    const scene = { callId, toolName }
    const { action: verdict, findings } = await screenText(
      this.#parts,
      this.#scope,
      'toolOutput',
      text,
      scene,
    )
    for (const { action, ...finding } of findings)
      if (action !== 'allow')
        this.#scope.runtime.emit({ ...finding, type: 'shield', point: 'toolOutput', action, callId })
    return verdict === 'allow' || verdict === 'warn'
  }

  onSkillChange(callId: string, change: SkillChange): void {
    this.#scope.sendBack({ type: 'SKILL_CHANGED', callId, change })
  }

  async onHandle(callId: string, handle: Json): Promise<void> {
    const { runtime, sendBack } = this.#scope
    sendBack({ type: 'HANDLE_SAVED', callId, handle })
    // If a transition is in progress, the event is processed right after it.
    await Promise.resolve()
    await runtime.waitUntilDurable()
  }

  onHandoff(callId: string, to: string): void {
    const { runtime, sendBack } = this.#scope
    const tools = getTraits(getSpeakerTools(this.#parts.tools, to), runtime.binding)
    sendBack({ type: 'HANDED_OFF', callId, to, tools })
  }

  /**
   * The result of a call that expired while it waited, or `waits` if it lost its grant and waits for people. A call of
   * another process continues.
   */
  #refuse(call: BatchCall): ToolResult | 'waits' | null {
    const { context, runtime } = this.#scope
    if (call.grant !== undefined && !this.#isGranted(call)) {
      this.#scope.sendBack({ type: 'GRANT_ENDED', callId: call.id })
      return 'waits'
    }
    if (call.expiresAt === undefined || !isLate(call, runtime.time.now())) return null
    if (runtime.isRestored && isLate(call, this.#since)) return null
    return createExpired(getExpiry(call, context.expiry), true)
  }

  /** Whether a grant still covers the call. A tool that has changed since the grant was given needs a new approval. */
  #isGranted(call: BatchCall): boolean {
    const { parent, runtime } = this.#scope
    const { context } = parent.getSnapshot() as { context: AgentContext }
    if (isGrantEnded(context, call, runtime.time.now())) return false
    const { digest } = context.grants?.find(({ id }) => id === call.grant) ?? {}
    const tool = this.#parts.tools.get(call.name)
    return digest === undefined || tool === undefined || digest === digestTool(tool)
  }

  #report(callId: string, result: ToolResult): void {
    const { context, sendBack } = this.#scope
    if (context.features.resultShields) {
      // Shields screen only `content`.
      delete result.publicMessage
      delete result.appData
    }
    this.#ended += 1
    try {
      const usage = this.#subAgentBatch?.takeUsage(callId, result) ?? null
      // If the run is about to halt, queued calls never start.
      for (const { id } of haltsBatch(context, result) ? this.#calls.slice(this.#begun) : [])
        sendBack({ type: 'TOOL_RESULT', callId: id, result: notStarted })
      sendBack({ type: 'TOOL_RESULT', callId, result, ...(usage && { usage }) })
    } catch {
      // The remaining calls must still run.
    }
  }

  async #openSubAgents(): Promise<SubAgentBatch> {
    const { createSubAgentBatch } = await loadSubAgents()
    return (this.#subAgentBatch ??= createSubAgentBatch(this.#parts, this.#scope))
  }
}

const createLoadFailure = (what: string, error: unknown): ToolResult => ({
  status: 'error',
  errorKind: 'failed',
  content: `${what} could not be loaded: ${describeError(error)}`,
  durationMs: 0,
})

const refusedToAsk = toResult(
  'blocked',
  "The tool's server asked the user a question that a shield refused. The call was cancelled.",
)

const notStarted = toResult(
  'not_executed',
  'Not executed: a guardrail stopped the run (terminal_delegation).',
)

type ToolWork = StepWork<'tool_execution', ToolResult>

/** Built lazily, because many runs may be parked in such calls. Screened calls omit the return value. */
class ToolStep implements ToolWork {
  readonly #context: AgentContext
  readonly #call: Pick<BatchCall, 'id' | 'name' | 'arguments'>

  constructor(context: AgentContext, call: Pick<BatchCall, 'id' | 'name' | 'arguments'>) {
    this.#context = context
    this.#call = call
  }

  get callId(): string {
    return this.#call.id
  }

  get step(): ToolWork['step'] {
    return createToolStep(this.#context, this.#call.id, this.#call.name)
  }

  toEnding(result: ToolResult | null): ReturnType<ToolWork['toEnding']> {
    const { id, name, arguments: text } = this.#call
    const toolCall = { id, type: 'function' as const, function: { name, arguments: text } }
    const { resultShields } = this.#context.features
    const threw = result !== null && hasThrown(result)
    const message = resultShields ? 'The tool threw. Shields check the error.' : (result?.content ?? '')
    return {
      outcome: result?.status === 'ok' ? 'ok' : 'error',
      ...(threw && { error: attachCause({ code: result.status, message }, result) }),
      payload: { toolCall, toolResponse: result && toStepResponse(result, resultShields) },
    }
  }
}

function createToolStep(context: AgentContext, callId: string, name: string): ToolWork['step'] {
  return { stepType: 'tool_execution', stepId: getCallStepId(context, callId), callId, name }
}

function toStepResponse(
  { status, errorKind, content, truncated }: ToolResult,
  isWithheld: boolean,
): ToolStepResponse {
  return {
    status,
    ...(errorKind && { errorKind }),
    content: isWithheld ? null : content,
    ...(truncated && { truncated }),
  }
}
