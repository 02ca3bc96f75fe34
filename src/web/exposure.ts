import { guards } from '../../guards/roster.js'
import type { AgentEvent } from '../../machines/agent/announcements.js'
import type { Message } from '../../machines/agent/messages.js'
import type { Reason, RunFailure, TurnEnd } from '../../machines/agent/run-result.js'
import type { ResultStatus } from '../../machines/agent/batch-calls.js'
import { ConfigError, StatewrightError } from '../core/base/errors.js'
import { EventFailures, type EventFailure } from './event-failures.js'

/**
 * Makes the text that a page is shown for an error.
 *
 * `error`: what was thrown, where it was thrown in this process; after a reload, and in another process, a
 * `StatewrightError` with the code and message that the log has. `session`: its id; `callId`: of a tool's error.
 */
export type ErrorFormatter = (error: unknown, at: { session: string; callId?: string }) => string

/**
 * What a page may see besides the answer. Masked content stays readable for the model and in the log.
 *
 * @example
 * const expose: ExposeOptions = { errors: 'code', toolErrors: (error) => `That did not work.`, usage: true }
 */
export interface ExposeOptions {
  /** Why a run failed. `true`: the message as it is; `'code'`, `false`: a sentence with a stable code. Default: `'code'`. */
  errors?: boolean | 'code' | ErrorFormatter
  /** What a failed call says. A `ToolError`'s `publicMessage` is shown in any case. Default: `'code'`. */
  toolErrors?: boolean | 'code' | ErrorFormatter
  /** Whether a page is told that a model request is retried. `'code'`: with a code and without words. Default: false. */
  retries?: boolean | 'code' | ErrorFormatter
  /** Tokens, cost in USD, and what is left of budgets. Default: false. */
  usage?: boolean
  /** Names of models. Default: false. */
  models?: boolean
}

/** `expose` as it was checked: its functions return null where the app's function has failed. */
export interface CheckedExpose {
  errors?: boolean | 'code' | SafeFormatter
  toolErrors?: boolean | 'code' | SafeFormatter
  retries?: boolean | 'code' | SafeFormatter
  usage?: boolean
  models?: boolean
}

type SafeFormatter = (...args: Parameters<ErrorFormatter>) => string | null
type ReportFailure = (error: unknown, at: Parameters<ErrorFormatter>[1]) => void

const exposeKeys = ['errors', 'toolErrors', 'retries', 'usage', 'models'] as const

/**
 * `report` receives the first failure of each function of `expose`.
 * @throws {ConfigError} `invalid_config` for an unknown key or value
 */
export function checkExpose(expose: ExposeOptions = {}, report: ReportFailure): CheckedExpose {
  const wrong = (message: string, key: string): ConfigError => new ConfigError('invalid_config', message, key)
  if (typeof expose !== 'object' || expose === null)
    throw wrong(`expose must be an object with some of ${exposeKeys.join(', ')}.`, 'expose')
  for (const [key, value] of Object.entries(expose)) {
    const isKnown = (exposeKeys as readonly string[]).includes(key)
    if (!isKnown) throw wrong(`expose.${key} is unknown: it has ${exposeKeys.join(', ')}.`, `expose.${key}`)
    if (value === undefined || typeof value === 'boolean') continue
    const hasWords = key !== 'usage' && key !== 'models'
    if (hasWords && (value === 'code' || typeof value === 'function')) continue
    const allowed = hasWords ? "true, false, 'code' or a function" : 'true or false'
    throw wrong(`expose.${key} must be ${allowed}.`, `expose.${key}`)
  }
  const entries = Object.entries(expose) as [string, unknown][]
  return Object.fromEntries(
    entries.map(([key, value]) => [
      key,
      typeof value === 'function' ? guardFormatter(key, value as ErrorFormatter, report) : value,
    ]),
  )
}

/** A function that fails must not make a chat unreadable. It may be called for each message, so only its first failure is reported. */
function guardFormatter(key: string, format: ErrorFormatter, report: ReportFailure): SafeFormatter {
  let isReported = false
  return (error, at) => {
    try {
      const text: unknown = format(error, at)
      if (typeof text === 'string') return text
      throw new TypeError(`expose.${key} must return a text, and has returned ${typeof text}.`)
    } catch (failure) {
      if (!isReported) report(failure, at)
      isReported = true
      return null
    }
  }
}

/** Masks the events and messages of one session for one page. */
export class PageView {
  readonly #expose: CheckedExpose
  readonly #session: string
  readonly #failures = new EventFailures()

  constructor(expose: CheckedExpose, session: string) {
    this.#expose = expose
    this.#session = session
  }

  /** The event as the page may see it; null when the page does not get it. */
  maskEvent(event: AgentEvent): AgentEvent | null {
    const failed = this.#failures.findFailure(event)
    return this.#maskEventWith(event, failed?.error)
  }

  #maskEventWith(event: AgentEvent, error: unknown): AgentEvent | null {
    const { errors, usage, models } = this.#expose
    switch (event.type) {
      case 'tool_result':
        return { ...event, ...this.#maskToolResult(event, event.callId, error) }
      case 'error':
        return { ...event, ...this.maskFailure(event, error) }
      case 'retry':
        return this.#maskRetry(event, error)
      case 'child_event': {
        const shown = this.#maskEventWith(event.event, error)
        return shown && { ...event, event: shown }
      }
      case 'usage':
        return usage === true ? event : null
      // It names the app's limits.
      case 'waiting_for_slot':
        return null
      case 'budget_warning':
        return usage === true
          ? event
          : { ...event, message: nearBudgetMessage, remainingTokens: null, remainingCost: null }
      case 'warning':
        return errors === true && models === true
          ? event
          : { ...event, message: `A warning (${event.code}).` }
      case 'guardrail':
        return errors === true && this.#expose.toolErrors === true
          ? event
          : { ...event, evidence: '', message: getSentence(event.guard) }
      case 'step_completed':
        return removePayload(event)
      default:
        return event
    }
  }

  maskMessages(messages: readonly Message[]): Message[] {
    return messages.map((message) => {
      if (message.role !== 'tool') return message
      const { status, publicMessage } = (message.data ?? {}) as Record<string, string | undefined>
      if (status === undefined) return message
      const result = { status: status as ResultStatus, content: message.content, publicMessage }
      const { content } = this.#maskToolResult(result, message.tool_call_id)
      if (content === message.content) return message
      const { noteLength: _, ...data } = message.data ?? {}
      return { ...message, content, data }
    })
  }

  /** A result that is not in a message yet. */
  maskResult<Result extends { callId: string; status: ResultStatus; content: string }>(
    result: Result,
  ): Result {
    return { ...result, ...this.#maskToolResult(result, result.callId) }
  }

  /** The reason why a run failed or rests. */
  maskFailure<Failure extends { code: string; message: string; budget?: string }>(
    failure: Failure,
    error?: unknown,
  ): Failure {
    const { errors = 'code' } = this.#expose
    // Shields write their messages for users.
    if (errors === true || failure.code === 'shield') return failure
    // The id of a budget is the app's own.
    const { budget: _budget, ...shown } = failure
    const code = toPageCode(failure.code)
    const original = error ?? new StatewrightError(failure.code, failure.message)
    const message = typeof errors === 'function' ? errors(original, { session: this.#session }) : null
    return { ...(shown as Failure), code, message: message ?? `${getSentence(code)} (${code})` }
  }

  maskRunFailure(failure: RunFailure | null): RunFailure | null {
    return failure && this.maskFailure(failure)
  }

  maskEnds(ends: readonly TurnEnd[]): TurnEnd[] {
    return ends.map((end) => (end.error ? { ...end, error: this.maskFailure(end.error) } : end))
  }

  #maskToolResult(
    result: { status: ResultStatus; content: string; publicMessage?: string | undefined },
    callId: string,
    error?: unknown,
  ): { content: string } {
    const { status, content, publicMessage } = result
    const { toolErrors = 'code' } = this.#expose
    if (!isMaskedStatus(status)) return { content }
    if (publicMessage !== undefined) return { content: publicMessage }
    if (toolErrors === true) return { content }
    const original = error ?? new StatewrightError(status, content)
    const at = { session: this.#session, callId }
    const text = typeof toolErrors === 'function' ? toolErrors(original, at) : null
    return { content: text ?? `${sentenceByStatus[status] ?? sentenceByStatus.error} (${status})` }
  }

  #maskRetry(event: Extract<AgentEvent, { type: 'retry' }>, error: unknown): AgentEvent | null {
    const { retries = false, models } = this.#expose
    if (retries === false) return null
    const { model, ...rest } = event
    const named = models === true && model !== undefined ? { model } : {}
    if (retries === true) {
      const isOther = model !== undefined && models !== true
      return { ...rest, ...named, ...(isOther && { message: 'The model failed, and another is asked.' }) }
    }
    const code = toPageCode(event.code)
    const original = error ?? new StatewrightError(event.code, event.message)
    const message = retries === 'code' ? null : retries(original, { session: this.#session })
    return { ...rest, ...named, code, message: message ?? `The model is asked again. (${code})` }
  }
}

const isMaskedStatus = (status: ResultStatus): boolean => status !== 'ok' && status !== 'rejected'

/** The payload of a step is for programs on the server only. */
function removePayload(event: Extract<AgentEvent, { type: 'step_completed' }>): AgentEvent {
  const { error: _, ...rest } = event
  return { ...rest, payload: emptyPayload } as AgentEvent
}

const emptyPayload = {
  modelResponse: null,
  toolCall: { id: '', type: 'function', function: { name: '', arguments: '' } },
  toolResponse: null,
  violation: null,
  retrievedContext: null,
  item: null,
}

const nearBudgetMessage = 'The budget for this answer is nearly used up.'

const sentenceByStatus: Partial<Record<ResultStatus, string>> & { error: string } = {
  error: 'The tool failed.',
  timeout: 'The tool took too long.',
  denied: 'The tool refused this call.',
  unknown_tool: 'There is no such tool.',
  invalid_arguments: 'The tool was called with arguments that do not fit.',
  blocked: 'A guardrail or a shield refused this call.',
  not_executed: 'The call was not executed.',
  not_loaded: 'The tool is loaded first.',
  interrupted: 'The run stopped while this call was running. Its outcome is unknown.',
}

/** The sentence for each code. Other codes come from the provider or from inside the server. */
const sentenceByCode: Partial<Record<Reason | 'session_busy' | 'provider_error' | 'internal', string>> = {
  end_turn: 'The answer is complete.',
  max_tokens: 'The answer is too long.',
  refusal: 'The model declined to answer.',
  content_filter: 'A content filter stopped the answer.',
  cancelled: 'The answer was cancelled.',
  timeout: 'The answer took too long.',
  max_steps: 'The answer took more steps than it may.',
  max_tool_calls: 'The answer took more steps than it may.',
  shared_budget: 'The budget for this answer is used up.',
  token_budget: 'The budget for this answer is used up.',
  output_tokens: 'The budget for this answer is used up.',
  cost_limit: 'The budget for this answer is used up.',
  context_overflow: 'The conversation has become too long.',
  user_guard: 'A guardrail stopped the answer.',
  provider_error: 'The model could not answer. Try again later.',
  incomplete_response: 'The answer broke off. Try again.',
  empty_response: 'The model gave no answer. Try again.',
  invalid_output: 'The model gave an answer that does not fit.',
  store_error: 'The conversation could not be stored. Try again later.',
  internal: 'The server has failed. Try again later.',
  paused: 'The run is paused.',
  sleeping: 'The run sleeps.',
  session_busy: 'Another request works on this chat. Try again.',
}

/** The sentence that a page shows for a code. */
export function getSentence(code: string): string {
  return (sentenceByCode as Partial<Record<string, string>>)[code] ?? 'A guardrail stopped the answer.'
}

/** Maps every code to one that pages know. */
function toPageCode(code: string): string {
  return Object.hasOwn(sentenceByCode, code) || isGuardReason(code) ? code : 'provider_error'
}

function isGuardReason(code: string): boolean {
  return guards.some(([, { reasons }]) => (reasons as readonly string[]).includes(code))
}

/** Whether the page is shown less than the failure says. */
export function isFailureMasked(
  { errors, toolErrors, retries, models }: CheckedExpose,
  { where, error }: EventFailure,
): boolean {
  switch (where) {
    case 'tool':
      return toolErrors !== true
    case 'retry':
      return retries !== true
    case 'warning':
      return errors !== true || models !== true
    default:
      return errors !== true && !(error instanceof StatewrightError && error.code === 'shield')
  }
}
