import { runControls } from './run-controls.js'
import type { ChildAnswer, ChildQuestion, ToolResult } from '../../../machines/agent/batch-calls.js'
import type { AgentContext, Features } from '../../../machines/agent/context.js'
import { type RunResult, isWorkState } from '../../../machines/agent/run-result.js'
import { addUsage, noUsage, type Usage, subtractUsage } from '../../../machines/agent/usage.js'
import { ToolContent } from '../tools/tool-content.js'
import type { DelegateRequest, DelegateRun } from '../tools/tool.js'
import { UsageError } from '../base/errors.js'
import { parseJsonOr } from '../base/json.js'
import { limitText } from '../base/text.js'
import { isAccountExhausted } from '../models/to-model-failure.js'

/** The run of a sub-agent, as its call sees it. Outlives pauses of the sub-agent and of the parent run. */
export class ChildRun {
  #run: DelegateRun | undefined
  #end: RunResult | undefined
  #total: Usage = noUsage
  /** Already counted by the parent run. */
  #reported: Usage
  #isPausing = false
  #isWithdrawn = false
  /** The latest state. Undefined until the run starts. */
  #latest: AgentContext | undefined
  #isCancelled = false
  isReleasing = false
  /** Settles when the run has started or cannot start. */
  readonly #opened: Promise<void>
  #isOpened: () => void = () => undefined
  #isNotBegun = false
  #onEnd: (end: RunResult) => void = () => undefined
  /** Called when the run has used tokens but has not ended. */
  onUsage: () => void = () => undefined

  constructor(reported: Usage = noUsage) {
    this.#reported = reported
    this.#opened = new Promise((resolve) => {
      this.#isOpened = resolve
    })
  }

  /** Whether the run may still use tokens. */
  get isUnderWay(): boolean {
    return this.#end === undefined && this.#run !== undefined && isWorkState(this.#run.state)
  }

  /** Whether the run's log may be incomplete. */
  get isUnwritten(): boolean {
    return this.#end?.reason === 'store_error' || this.#isNotBegun
  }

  onUnsaved(listener: () => void): void {
    const notify = ({ error }: RunResult): void => {
      if (error?.recoverable === true) listener()
    }
    this.#run?.result.then(notify, () => undefined)
  }

  /** Receives each state at once, before it is durable. */
  readonly watch: DelegateRequest['watch'] = (context, end) => {
    this.#latest = context
    this.#total = context.usage.run
    if (!end) return this.onUsage()
    this.#end ??= end
    this.#onEnd(this.#end)
  }

  takeUsage(): Usage | null {
    const usage = subtractUsage(this.#reported, this.#total)
    if (usage !== null) this.#reported = addUsage(this.#reported, usage)
    return usage
  }

  /** Opens the run. Returns false if it has no log to continue from. @throws if it is refused */
  async begin(open: () => Promise<DelegateRun | null>): Promise<boolean> {
    try {
      this.#run = (await open()) ?? undefined
    } finally {
      this.#isNotBegun = this.#run === undefined
      this.#isOpened()
    }
    if (this.#isCancelled) this.cancel()
    return !this.#isNotBegun
  }

  /** Releases the run to the process that resumes the parent run. */
  async release(): Promise<void> {
    this.isReleasing = true
    // The run may still be acquiring its session.
    await this.#opened
    if (this.#run) await runControls.release(this.#run)
  }

  waitForRest(): Promise<RunResult> {
    return new Promise((resolve, reject) => {
      if (this.#end) return resolve(this.#end)
      this.#onEnd = resolve
      this.#run?.result.then(resolve, reject)
    })
  }

  /** Answers the questions of a resting run. A run that has moved past them ignores the answers. */
  async resumeWithAnswers(questions: readonly ChildQuestion[], isPausing: boolean): Promise<void> {
    // The run may have asked before the pause reached it.
    if (!isPausing && this.#latest?.pausing) this.withdrawPause()
    this.#isPausing = false
    this.#isWithdrawn = false
    const { state, pending = [] } = await this.waitForRest()
    if (state === 'PAUSED') this.#run?.resume()
    for (const question of questions) {
      const isAsked = pending.some(
        ({ callId, fingerprint, messageId }) =>
          callId === question.callId &&
          fingerprint === question.fingerprint &&
          (question.messageId === undefined || messageId === question.messageId),
      )
      if (!isAsked || !this.#run) continue
      try {
        answerQuestion(this.#run, question)
      } catch (error) {
        if (!(error instanceof UsageError) || error.code !== 'approval_expired') throw error
        // An approval that arrives too late ends the question in the sub-agent's run, too.
        runControls.expire(this.#run, question.expiresAt ?? 0)
      }
    }
  }

  pause(): void {
    if (this.#isPausing || !this.isUnderWay) return
    this.#isPausing = true
    this.#isWithdrawn = false
    this.#run?.pause()
  }

  /** Withdraws a pause. A sub-agent that is already paused resumes at the next check. */
  withdrawPause(): void {
    if (!this.#isPausing || this.#end !== undefined) return
    this.#isPausing = false
    if (this.#latest?.pausing ?? true) this.#run?.resume()
    else this.#isWithdrawn = true
  }

  /** Returns whether the run resumes, because its pause was withdrawn. */
  resumeWithdrawnPause(): boolean {
    const isWithdrawn = this.#isWithdrawn
    this.#isWithdrawn = false
    if (isWithdrawn && this.#run?.state === 'PAUSED') this.#run.resume()
    return isWithdrawn
  }

  cancel(): void {
    this.#isCancelled = true
    if (this.#end === undefined) this.#run?.cancel('The parent run no longer needs it.')
  }
}

function answerQuestion(
  run: DelegateRun,
  { callId, fingerprint, answer, expiresAt = 0 }: ChildQuestion,
): void {
  const options = { fingerprint, by: answer?.by }
  switch (answer?.type) {
    case 'approve':
      for (const { by, why } of answer.others ?? []) run.approve(callId, undefined, { fingerprint, by, why })
      return run.approve(
        callId,
        answer.arguments === undefined ? undefined : parseJsonOr(answer.arguments, answer.arguments),
        { ...options, why: answer.why },
      )
    case 'expired':
      return runControls.expire(run, expiresAt)
    case 'reject':
      return run.reject(callId, answer.why, options)
    case 'output':
      return run.addToolOutput(callId, parseStoredOutput(answer), options)
    default:
  }
}

function parseStoredOutput({ content, media, isError }: Extract<ChildAnswer, { type: 'output' }>): unknown {
  if (isError) return new Error(content)
  return media ? new ToolContent(content, media) : content
}

/** Only a completed run counts as success. */
export function toChildResult(
  result: RunResult,
  durationMs: number,
  maxChars: number,
  { resultShields }: Pick<Features, 'resultShields'>,
): ToolResult {
  const { state, error, output } = result
  // Guards repeat the message, possibly before shields have seen the result.
  const child = { state, code: toChildErrorCode(result), message: (!resultShields && error?.message) || '' }
  if (state === 'COMPLETED') {
    const text = output || 'It finished without any output.'
    return { status: 'ok', durationMs, child, ...limitText(text, maxChars) }
  }
  const isTransient = result.reason === 'provider_error' && error?.recoverable === true
  const errorKind = isTransient ? 'transient' : 'failed'
  const text = `The sub-agent did not finish: ${describeEnd(result)}\n${describeProgress(result)}`
  return { status: 'error', errorKind, durationMs, child, ...limitText(text, maxChars) }
}

const endings: Partial<Record<RunResult['state'], string>> = {
  BUDGET_EXCEEDED: 'it used up its budget.',
  TIMED_OUT: 'it timed out.',
  CANCELLED: 'it was cancelled.',
  BLOCKED: 'a shield refused its input or its output.',
}

function describeEnd({ state, reason, steps, error }: RunResult): string {
  if (state === 'MAX_STEPS') return `it reached its limit of ${steps} steps.`
  const what =
    state === 'PAUSED' ? `a guardrail stopped it (${reason}).` : `it failed (${error?.code ?? reason}).`
  return endings[state] ?? (error ? `${what} ${error.message}` : what)
}

function describeProgress({ output, steps, messages }: RunResult): string {
  if (output !== '') return `Its partial output: ${output}`
  const called = messages.flatMap((message) =>
    message.role === 'assistant' ? (message.tool_calls ?? []).map((call) => call.function.name) : [],
  )
  if (called.length === 0) return 'It had no output yet.'
  const counts = [...new Set(called)].map(
    (name) => `${name} (${called.filter((one) => one === name).length})`,
  )
  return `It had no output yet. In ${steps} steps it called ${counts.join(', ')}.`
}

/** Errors about the account or the configuration, for which a retry is pointless. */
const quota = /insufficient|billing|balance|payment|credit|quota|hard_limit|http_402/i
const configuration =
  /model|api_?key|auth|permission|forbidden|denied|access|unsupported|not_?found|deployment|parameter|invalid_(request|value|type)|unknown_(url|parameter)|http_4(00|01|03|04|05|22)\b/i
/** Errors about content. A request with other content may succeed. */
const content = /content|prompt|policy|safety|moderation|filter/i

/**
 * The code for the guard against terminal delegation, if a retry is pointless: `provider_quota` if the account is
 * exhausted, `provider_config` if the model, the key or parameters were rejected.
 */
function toChildErrorCode({ state, reason, error }: RunResult): string | null {
  if (error === undefined) return null
  if (state !== 'ERROR' || reason !== 'provider_error' || error.recoverable) return error.code
  if (quota.test(error.code) || /^Status 402\b/.test(error.message) || isAccountExhausted(error.message))
    return 'provider_quota'
  return configuration.test(error.code) && !content.test(error.code) ? 'provider_config' : error.code
}
