import { guards } from '../../guards/roster.js'
import type { AgentEvent } from '../../machines/agent/announcements.js'
import type { Message } from '../../machines/agent/messages.js'
import type { Reason, TurnEnd } from '../../machines/agent/run-result.js'
import type { ResultStatus } from '../../machines/agent/batch-calls.js'
import { configError, StatewrightError } from '../core/base/errors.js'

/**
 * Returns the text that pages show for an error.
 *
 * - `error`: the original error if it was thrown in this process; after a reload or in another process, a `StatewrightError`
 *   with the code and message from the log
 * - `session`: the session id
 * - `callId`: the call that a tool error belongs to
 */
export type ErrorFormatter = (error: unknown, at: { session: string; callId?: string }) => string

/**
 * What pages may see in addition to the answer. Masked content remains readable for the model and in the log.
 *
 * @example
 * const expose: ExposeOptions = { errors: 'code', toolErrors: (error) => `That did not work.`, usage: true }
 */
export interface ExposeOptions {
  /**
   * How to show why a run failed. `true` shows the original message, `'code'` or `false` a sentence with a stable code.
   * Defaults to `'code'`.
   */
  errors?: boolean | 'code' | ErrorFormatter
  /**
   * How to show the message of a failed call. The `publicMessage` of a `ToolError` is always shown. Defaults to
   * `'code'`.
   */
  toolErrors?: boolean | 'code' | ErrorFormatter
  /**
   * Whether pages see that a model request is retried. `'code'` shows the code without the message. Defaults to false.
   */
  retries?: boolean | 'code' | ErrorFormatter
  /** Whether to show tokens, cost in USD and remaining budgets. Defaults to false. */
  usage?: boolean
  /** Whether to show model names. Defaults to false. */
  models?: boolean
}

/** The functions return null if the app's function fails. */
export type CheckedExpose = {
  [Key in keyof ExposeOptions]: Exclude<ExposeOptions[Key], ErrorFormatter> | SafeFormatter
} & Pick<ExposeOptions, 'usage' | 'models'>

type SafeFormatter = (...args: Parameters<ErrorFormatter>) => string | null
type ReportFailure = (error: unknown, at: Parameters<ErrorFormatter>[1]) => void

const exposeKeys = ['errors', 'toolErrors', 'retries', 'usage', 'models'] as const

/** `report` receives each function's first failure. @throws {ConfigError} `invalid_config` */
export function checkExpose(expose: ExposeOptions = {}, report: ReportFailure): CheckedExpose {
  const keys = exposeKeys.join(', ')
  if (typeof expose !== 'object' || expose === null)
    throw configError(`expose must be an object with any of the keys ${keys}.`, 'expose')
  const checked = Object.entries(expose).map(([key, value]: [string, unknown]) => {
    if (!(exposeKeys as readonly string[]).includes(key))
      throw configError(`expose.${key} is unknown. Known keys: ${keys}.`, `expose.${key}`)
    if (value === undefined || typeof value === 'boolean') return [key, value]
    const hasWords = key !== 'usage' && key !== 'models'
    if (hasWords && value === 'code') return [key, value]
    if (hasWords && typeof value === 'function')
      return [key, guardFormatter(key, value as ErrorFormatter, report)]
    const allowed = hasWords ? "true, false, 'code' or a function" : 'true or false'
    throw configError(`expose.${key} must be ${allowed}.`, `expose.${key}`)
  })
  return Object.fromEntries(checked) as CheckedExpose
}

/** Reports only the function's first failure, because the function is called for every message. */
function guardFormatter(key: string, format: ErrorFormatter, report: ReportFailure): SafeFormatter {
  let isReported = false
  return (error, at) => {
    try {
      const text: unknown = format(error, at)
      if (typeof text === 'string') return text
      throw new TypeError(`expose.${key} must return a string, but returned ${typeof text}.`)
    } catch (failure) {
      if (!isReported) report(failure, at)
      isReported = true
      return null
    }
  }
}

/** A failure in the events of a run. `error` is the original error if it was thrown in this process. */
export interface EventFailure {
  where: 'run' | 'tool' | 'retry' | 'warning'
  error: unknown
  callId: string | null
}

/** Finds failures in the events of a run and its sub-agents. The thrown error is attached to an earlier step event. */
export function createFailureFinder(): (event: AgentEvent) => EventFailure | null {
  const errorByCall = new Map<string, { error: unknown }>()
  /** The error of each run's latest model request, by the path of the run. */
  const errorByRun = new Map<string, { code: string; error: unknown }>()

  function findFailure(event: AgentEvent, path: string): EventFailure | null {
    switch (event.type) {
      case 'child_event':
        return findFailure(event.event, `${path}${event.callId}/`)
      case 'step_completed': {
        const { error, outcome } = event
        if (event.stepType === 'tool_execution' && error?.cause !== undefined)
          errorByCall.set(path + event.callId, { error: error.cause })
        if (event.stepType !== 'inference') return null
        if (outcome === 'ok') errorByRun.delete(path)
        else if (error) errorByRun.set(path, { code: error.code, error: error.cause })
        return null
      }
      case 'tool_result': {
        const callId = path + event.callId
        const thrown = errorByCall.get(callId)
        errorByCall.delete(callId)
        if (!isFailedStatus(event.status)) return null
        const error = thrown?.error ?? new StatewrightError(event.status, event.content)
        return { where: 'tool', error, callId }
      }
      case 'error':
      case 'retry': {
        const thrown = errorByRun.get(path)
        const original = thrown?.code === event.code ? thrown.error : undefined
        const error = original ?? new StatewrightError(event.code, event.message)
        const callId = path === '' ? null : path.slice(0, -1)
        return { where: event.type === 'retry' ? 'retry' : 'run', error, callId }
      }
      case 'warning':
        return { where: 'warning', error: new StatewrightError(event.code, event.message), callId: null }
      default:
        return null
    }
  }

  return (event) => findFailure(event, '')
}

/** A call that was not executed has not failed, and the outcome of an interrupted call is unknown. */
export function isFailedStatus(status: ResultStatus): boolean {
  return !['ok', 'rejected', 'expired', 'not_executed', 'not_loaded', 'interrupted'].includes(status)
}

/** Masks the events and messages of one session for one page. */
export function createPageView(expose: CheckedExpose, session: string) {
  const { errors = 'code', toolErrors = 'code', retries = false, usage, models } = expose
  const findFailure = createFailureFinder()

  function format(
    option: CheckedExpose['errors'],
    error: unknown,
    code: string,
    message: string,
    call?: { callId: string },
  ): string | null {
    if (typeof option !== 'function') return null
    return option(error ?? new StatewrightError(code, message), { session, ...call })
  }

  function maskEvent(event: AgentEvent, error: unknown): AgentEvent | null {
    switch (event.type) {
      case 'tool_result':
        return { ...event, ...maskToolResult(event, event.callId, error) }
      case 'error':
        return { ...event, ...maskFailure(event, error) }
      case 'retry':
        return maskRetry(event, error)
      case 'child_event': {
        const shown = maskEvent(event.event, error)
        return shown && { ...event, event: shown }
      }
      case 'usage':
        return usage === true ? event : null
      // Limiter ids are internal to the app.
      case 'waiting_for_slot':
        return null
      case 'budget_warning': {
        if (usage === true) return event
        const message = 'The budget for this answer is almost used up.'
        return { ...event, message, remainingTokens: null, remainingCost: null }
      }
      case 'warning':
        if (errors === true && models === true) return event
        return { ...event, message: `A warning (${event.code}).` }
      case 'guardrail':
        if (errors === true && toolErrors === true) return event
        return { ...event, evidence: '', message: getSentence(event.guard) }
      case 'step_completed': {
        // Step payloads are only for programs on the server.
        const { error: _, ...rest } = event
        return { ...rest, payload: emptyPayload } as AgentEvent
      }
      default:
        return event
    }
  }

  function maskFailure<Failure extends { code: string; message: string; budget?: string }>(
    failure: Failure,
    error?: unknown,
  ): Failure {
    // Messages from shields are written for users.
    if (errors === true || failure.code === 'shield') return failure
    // Budget ids are internal to the app.
    const { budget: _budget, ...shown } = failure
    const code = toPageCode(failure.code)
    const message = format(errors, error, failure.code, failure.message)
    return { ...(shown as Failure), code, message: message ?? `${getSentence(code)} (${code})` }
  }

  function maskToolResult(result: Settled, callId: string, error?: unknown): { content: string } {
    const { status, content, publicMessage } = result
    if (status === 'ok' || status === 'rejected') return { content }
    if (publicMessage !== undefined) return { content: publicMessage }
    if (toolErrors === true) return { content }
    const text = format(toolErrors, error, status, content, { callId })
    return { content: text ?? `${sentenceByStatus[status] ?? sentenceByStatus.error} (${status})` }
  }

  function maskRetry(event: Extract<AgentEvent, { type: 'retry' }>, error: unknown): AgentEvent | null {
    if (retries === false) return null
    const { model, ...rest } = event
    const named = models === true && model !== undefined ? { model } : {}
    if (retries === true) {
      const isOther = model !== undefined && models !== true
      return { ...rest, ...named, ...(isOther && { message: 'The model failed. Trying another model.' }) }
    }
    const code = toPageCode(event.code)
    const message = format(retries, error, event.code, event.message)
    return { ...rest, ...named, code, message: message ?? `Retrying the model request. (${code})` }
  }

  return {
    maskFailure,
    maskEvent: (event: AgentEvent) => maskEvent(event, findFailure(event)?.error),
    maskMessages: (messages: readonly Message[]): Message[] =>
      messages.map((message) => {
        if (message.role !== 'tool') return message
        const { status, publicMessage } = (message.data ?? {}) as Record<string, string | undefined>
        if (status === undefined) return message
        const result = { status: status as ResultStatus, content: message.content, publicMessage }
        const { content } = maskToolResult(result, message.tool_call_id)
        if (content === message.content) return message
        const { noteLength: _, ...data } = message.data ?? {}
        return { ...message, content, data }
      }),
    maskResult: <Result extends Settled & { callId: string }>(result: Result): Result => ({
      ...result,
      ...maskToolResult(result, result.callId),
    }),
    maskEnds: (ends: readonly TurnEnd[]): TurnEnd[] =>
      ends.map((end) => (end.error ? { ...end, error: maskFailure(end.error) } : end)),
  }
}

type Settled = { status: ResultStatus; content: string; publicMessage?: string | undefined }

const emptyPayload = {
  modelResponse: null,
  toolCall: { id: '', type: 'function', function: { name: '', arguments: '' } },
  toolResponse: null,
  violation: null,
  retrievedContext: null,
  item: null,
}

const sentenceByStatus: Partial<Record<ResultStatus, string>> & { error: string } = {
  error: 'The tool failed.',
  timeout: 'The tool took too long.',
  denied: 'The tool refused this call.',
  expired: 'The call was not approved in time.',
  unknown_tool: 'This tool does not exist.',
  invalid_arguments: "The tool call's arguments were invalid.",
  blocked: 'A guardrail or a shield refused this call.',
  not_executed: 'The call was not executed.',
  not_loaded: 'The tool must be loaded first.',
  interrupted: 'The run stopped while this call was running. Its outcome is unknown.',
}

/** The sentence for each code that pages know. Other codes come from the provider or the server. */
const sentenceByCode: Partial<Record<Reason | 'session_busy' | 'provider_error' | 'internal', string>> = {
  end_turn: 'The answer is complete.',
  max_tokens: 'The answer is too long.',
  refusal: 'The model declined to answer.',
  content_filter: 'A content filter stopped the answer.',
  cancelled: 'The answer was cancelled.',
  timeout: 'The answer took too long.',
  max_steps: 'The answer reached the step limit.',
  max_tool_calls: 'The answer reached the step limit.',
  shared_budget: 'The budget for this answer is used up.',
  token_budget: 'The budget for this answer is used up.',
  output_tokens: 'The budget for this answer is used up.',
  cost_limit: 'The budget for this answer is used up.',
  context_overflow: 'The conversation has become too long.',
  user_guard: 'A guardrail stopped the answer.',
  provider_error: 'The model could not answer. Try again later.',
  incomplete_response: 'The answer was cut off. Try again.',
  empty_response: 'The model returned no answer. Try again.',
  invalid_output: 'The model returned an invalid answer.',
  store_error: 'The conversation could not be stored. Try again later.',
  internal: 'The server failed. Try again later.',
  paused: 'The run is paused.',
  sleeping: 'The run is sleeping.',
  approval_expired: 'A call was not approved in time.',
  session_busy: 'Another request is working on this chat. Try again.',
}

export function getSentence(code: string): string {
  return (sentenceByCode as Partial<Record<string, string>>)[code] ?? 'A guardrail stopped the answer.'
}

function toPageCode(code: string): string {
  const isKnown =
    Object.hasOwn(sentenceByCode, code) ||
    guards.some(([, { reasons }]) => (reasons as readonly string[]).includes(code))
  return isKnown ? code : 'provider_error'
}

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
