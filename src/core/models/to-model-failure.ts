import { truncate, toEvidence, scrubEvidence } from '../../../guards/lib/words.js'
import {
  type FailureKind,
  createModelFailure,
  type ModelFailure,
} from '../../../machines/agent/model-response.js'
import { readWaitMs, asObject } from '../base/values.js'
import { listCauses } from '../base/errors.js'
import { stripControls } from '../base/text.js'
import { readProperty, readText } from '../base/json.js'
import { systemClock } from '../base/clock.js'
import { normalizeFailure, toSingleLine } from './normalize-response.js'
import { type ErrorBody, isMarkup, readErrorBody, readWord, findRefusedContent } from './error-body.js'
import { ModelError } from './provider.js'

/**
 * Converts any rejection to plain data by its fields, never its class, so that it works with any client. Retry-After
 * dates are relative to `now`. `advise` returns a remedy for a fatal status. Never throws.
 */
export function toModelFailure(
  error: unknown,
  now: number = systemClock.now(),
  advise: (status: number) => string = getFatalAdvice,
): ModelFailure {
  const failure = readFailure(error, now, advise)
  const word = scrubEvidence(toSingleLine(truncate(failure.code, 1000)))
  const code = truncate(word, 100) || 'unknown'
  const message = stripControls(failure.message)
  return code === failure.code && message === failure.message ? failure : { ...failure, code, message }
}

function readFailure(error: unknown, now: number, advise: (status: number) => string): ModelFailure {
  try {
    if (error instanceof ModelError) return normalizeFailure(error.failure)
    const status = readProperty(error, 'status')
    if (typeof status === 'number' && Number.isInteger(status) && status >= 100)
      return toHttpFailure(status, readBody(error), readProperty(error, 'headers'), now, advise)
    return toConnectionFailure(error) ?? toUnknownFailure(error)
  } catch {
    // Reading the fields of the error throws.
    return createFailure('fatal', 'unknown', 'The provider failed with an unreadable error.')
  }
}

export function toBodyFailure(body: unknown): ModelFailure {
  const error = readErrorBody(body)
  if (error.status !== null) return toHttpFailure(error.status, error, undefined, 0, getFatalAdvice)
  const { retryAfterMs } = error
  const code = error.code || error.type || 'provider_error'
  const message = formatSentence('The provider aborted its response', error.message)
  return { ...createFailure(classifyError(null, error), code, message, error), retryAfterMs }
}

function toHttpFailure(
  status: number,
  error: ErrorBody,
  headers: unknown,
  now: number,
  advise: (status: number) => string,
): ModelFailure {
  const unsupported = status >= 500 ? findRefusedContent(status, error) : null
  const kind = unsupported ? 'fatal' : classifyError(status, error)
  const advice = kind === 'fatal' ? advise(status) : kind === 'context_overflow' ? overflowAdvice : ''
  const target = status >= 300 && status <= 399 ? getHeader(headers, 'location') : ''
  const redirect = target === '' ? '' : `it redirects to ${target}`
  const reason = redirect || error.message || 'the provider gave no reason'
  const code = error.code || error.type || `http_${status}`
  const message = formatSentence(`Status ${status}`, reason, advice)
  const resetMs = status === 429 ? parseRateLimitReset(headers) : null
  const retryAfterMs = parseRetryAfter(headers, now) ?? error.retryAfterMs ?? resetMs
  return { ...createFailure(kind, code, message, error, status), status, retryAfterMs }
}

/** `status` is null for an error in a stream. */
function classifyError(status: number | null, error: ErrorBody): FailureKind {
  const { code, type, message } = error
  const words = `${code} ${type}`
  if (isContextOverflow(status, error)) return 'context_overflow'
  if (misgeneratedCodes.test(code)) return 'transient'
  const isExhausted = accountWords.test(words) || isAccountExhausted(message)
  if (status === 429) return isExhausted ? 'fatal' : 'rate_limit'
  if (status !== null)
    return status >= 500 || [408, 409, 425].includes(status) || /overloaded/i.test(words)
      ? 'transient'
      : 'fatal'
  if (isExhausted) return 'fatal'
  if (/rate_?limit|too_?many_?requests|throttl/i.test(words)) return 'rate_limit'
  return /invalid|auth|permission|denied|not_?found|forbidden|unsupported|content_?(filter|policy)/i.test(
    words,
  )
    ? 'fatal'
    : 'transient'
}

const accountWords = /insufficient|billing|balance|payment|credit|exceeded_current_quota|hard_limit/i

/** Whether the message reports an account without credit. A quota may also be a limit per minute. */
export const isAccountExhausted = (message: string): boolean => accountSentences.test(message)

const accountSentences = new RegExp(
  [
    String.raw`\bused (?:up )?all (?:(?:of )?(?:the|your) )?(?:available |remaining )?credits?\b`,
    String.raw`\b(?:out of|no|no more|insufficient|not enough) (?:available |remaining )?(?:credits?|funds|balance)\b`,
    String.raw`\bcredits? (?:balance )?(?:is|are|has been|have been) (?:too low|exhausted|depleted|used up)\b`,
    String.raw`\b(?:monthly )?spending limit\b|\bpayment required\b|\bbilling (?:hard )?limit\b|\binsufficient_quota\b`,
  ].join('|'),
  'i',
)

/** Codes for a malformed call written by the model (Groq). The next attempt may succeed. */
const misgeneratedCodes = /^tool_use_failed$|^output_parse_failed$/

const overflowAdvice = 'Shorten the conversation, or set context.window and context.strategy.'

export function getFatalAdvice(status: number): string {
  if (status >= 300 && status <= 399)
    return "Redirects are not followed. Set the base URL to the API's address."
  if (status === 401)
    return 'Check the API key (option apiKey, or OPENAI_API_KEY) and that it belongs to the base URL.'
  if (status === 402 || status === 429)
    return 'Check the plan and the balance of your account with the provider.'
  if (status === 403) return 'Check that the API key may use this model and that the region is allowed.'
  if (status === 404) return 'Check the model name and the base URL (it usually ends in /v1).'
  if (status === 405) return 'Check the base URL (it usually ends in /v1).'
  return "Check the model name, the API key and the request's parameters (sampling, extraBody, tools)."
}

/** The parsed body if the built-in client attached it, otherwise the body of the `openai` client. */
function readBody(error: unknown): ErrorBody {
  const body = readErrorBody(readProperty(error, 'body') ?? readProperty(error, 'error'))
  const text = readText(error, 'message').replace(/^\d{3} (status code \(no body\))?/, '')
  return {
    ...body,
    code: body.code || readWord(readProperty(error, 'code')),
    type: body.type || readWord(readProperty(error, 'type')),
    param: body.param || readWord(readProperty(error, 'param')),
    message: body.message || (isMarkup(text) ? 'it returned a web page' : text),
  }
}

/** Messages that browsers and clients use for connection errors without a code. */
const connectionWords =
  /^connection error|fetch failed|failed to fetch|load failed|networkerror|network (error|connection)|^terminated$|premature close|socket hang up|other side closed|connection (was )?(reset|refused|closed|aborted|lost)|error (reading a body|sending request)/i
const timeoutWords = /timed? ?out/i
const connectionCodes =
  /^(ECONN|ETIMEDOUT|ESOCKET|EPIPE|EHOST|ENET|ENOTFOUND|EAI_|UND_ERR_|ERR_SOCKET|ERR_STREAM_PREMATURE|ERR_HTTP2|ERR_NETWORK)/
const certificateCodes = /^(CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|ERR_TLS_)/

function toConnectionFailure(error: unknown): ModelFailure | null {
  const chain = listCauses(error, 8)
  const codes = chain.map((cause) => readText(cause, 'code'))
  const certificate = codes.find((code) => certificateCodes.test(code))
  if (certificate !== undefined) {
    const message = `The TLS certificate of the provider is not trusted (${certificate}). Check the base URL, or trust the certificate.`
    return createFailure('fatal', certificate, message)
  }
  const names = chain.map((cause) => readText(cause, 'name'))
  const messages = chain.map((cause) => (typeof cause === 'string' ? cause : readText(cause, 'message')))
  const code = codes.find((code) => connectionCodes.test(code))
  const timedOut = names.includes('TimeoutError') || messages.some((message) => timeoutWords.test(message))
  if (timedOut || /TIMEOUT|ETIMEDOUT/.test(code ?? '')) {
    const shown = code === undefined ? '' : ` (${code})`
    return createFailure('transient', 'timeout', `The provider did not answer in time${shown}.`)
  }
  if (names.includes('AbortError') || messages.includes('Request was aborted.'))
    return createFailure('transient', 'aborted', 'The request was aborted.')
  if (code === undefined && !messages.some((message) => connectionWords.test(message))) return null
  const reason = code ?? messages.findLast((message) => message !== '') ?? ''
  const advice = 'Check the base URL and the network if this persists.'
  const message = formatSentence('The connection to the provider failed', reason, advice)
  return createFailure('transient', 'connection', message)
}

function toUnknownFailure(error: unknown): ModelFailure {
  const code = readText(error, 'code')
  const message = readText(error, 'message') || (typeof error === 'string' ? error : '')
  const words: ErrorBody = { ...readErrorBody(undefined), code, type: readText(error, 'type'), message }
  const known = classifyError(null, words)
  const isPassing = /overloaded|unavailable|server_error/i.test(code)
  // An error without a status is classified only if its code is unambiguous.
  const isClear = known === 'context_overflow' || (code !== '' && !isPassing && known !== 'transient')
  const kind = isClear ? known : isPassing ? 'transient' : 'fatal'
  const shown = message === '' ? 'The provider failed with an error without a message.' : toEvidence(message)
  return createFailure(kind, code || 'unknown', shown)
}

function createFailure(
  kind: FailureKind,
  code: string,
  message: string,
  error?: ErrorBody,
  status: number | null = null,
): ModelFailure {
  const refused = kind === 'fatal' && error ? findRefusedContent(status, error) : null
  return createModelFailure({ kind, code, message, ...(refused && { refused }) })
}

function formatSentence(what: string, why: string, advice = ''): string {
  const reason = why.trimEnd()
  const end = /[.!?…]$/.test(reason) ? '' : '.'
  const sentence = why === '' ? `${what}.` : `${what}: ${reason}${end}`
  return advice === '' ? toEvidence(sentence) : `${toEvidence(sentence)} ${advice}`
}

const overflowCodes =
  /^(context_length_exceeded|context_window_exceeded|model_max_prompt_tokens_exceeded|tokens_limit_reached|too_many_prompt_tokens|exceed_context_size_error|request_too_large|string_above_max_length)$/i

/** Messages about an exceeded context window. Each is used by at least one provider. */
const overflowSentences = [
  /maximum context length/i, // OpenAI, DeepSeek, vLLM, Mistral, OpenRouter
  /context (length|window|size|limit)[^.]{0,40}\b(exceed|too (long|large|small)|overflow)/i, // MiniMax, LM Studio
  /exceed[^.]{0,60}\bcontext( (length|window|size|limit))?/i, // llama.cpp, Ollama, Anthropic
  /reduce the length of (the|your) (messages|prompt|input)/i, // Groq, OpenAI
  /(prompt|input) (is )?too (long|large)/i, // Anthropic, Bedrock, Ollama
  /input token count[^.]{0,60}exceeds/i, // Gemini
  /maximum prompt length/i, // xAI
  /prompt (length )?exceeds (the )?max(imum)? length/i, // Z.ai
  /exceeded model token limit/i, // Moonshot
  /total number of tokens in the prompt cannot exceed/i, // Cohere
  /`inputs` tokens \+ `max_new_tokens` must be/i, // Text Generation Inference, Together
  /range of input length should be/i, // Alibaba
  /total length of all messages is too long/i,
  /too many tokens: size limit exceeded/i,
  /number of (input|prompt) tokens exceeds (the )?max/i,
]

/** Matches errors about a request that exceeds the limit of a whole minute. Only a shorter request helps. */
const exceedsMinuteLimit = /request too large/i

function isContextOverflow(status: number | null, { code, type, message }: ErrorBody): boolean {
  if (status === 413) return true
  if (status === 401 || status === 403) return false
  if (status === 429) return exceedsMinuteLimit.test(message)
  return (
    overflowCodes.test(code) ||
    overflowCodes.test(type) ||
    overflowSentences.some((sentence) => sentence.test(message))
  )
}

/** Milliseconds from `Retry-After-Ms` or `Retry-After` (seconds or an HTTP date). Null if invalid. */
function parseRetryAfter(headers: unknown, now: number): number | null {
  const ms = parseAmount(getHeader(headers, 'retry-after-ms'))
  if (ms !== null && ms > 0) return readWaitMs(ms)
  const text = getHeader(headers, 'retry-after')
  const seconds = parseAmount(text)
  if (seconds !== null) return readWaitMs(seconds * 1000)
  // Date.parse accepts almost anything.
  const date = /\d\d:\d\d:\d\d/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(date) ? ms : readWaitMs(Math.max(0, date - now))
}

function parseAmount(text: string): number | null {
  return /^\d{1,15}(\.\d+)?$/.test(text) ? Number(text) : null
}

/** Reads a header. Returns '' if it is absent. `name` is in lower case. `headers` is a `Headers` or a plain object. */
function getHeader(headers: unknown, name: string): string {
  if (typeof headers !== 'object' || headers === null) return ''
  if ('get' in headers && typeof headers.get === 'function') {
    const value: unknown = headers.get(name)
    return typeof value === 'string' ? value.trim() : ''
  }
  const entry = Object.entries(asObject(headers) ?? {}).find(([key]) => key.toLowerCase() === name)
  return typeof entry?.[1] === 'string' || typeof entry?.[1] === 'number' ? String(entry[1]).trim() : ''
}

/** Milliseconds until an exhausted `x-ratelimit-…` resets, given as `1s`, `6m0s`, `120ms` or seconds. */
export function parseRateLimitReset(headers: unknown): number | null {
  const waits = ['requests', 'tokens'].flatMap((name) => {
    const remaining = getHeader(headers, `x-ratelimit-remaining-${name}`)
    const resetMs = parseDuration(getHeader(headers, `x-ratelimit-reset-${name}`))
    return remaining !== '' && Number(remaining) <= 0 && resetMs !== null ? [resetMs] : []
  })
  return waits.length === 0 ? null : Math.max(...waits)
}

const unitMs: Record<string, number> = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000, ms: 1 }

function parseDuration(text: string): number | null {
  const seconds = parseAmount(text)
  if (seconds !== null) return readWaitMs(seconds * 1000)
  if (!/^(\d{1,9}(\.\d{1,9})?(ms|[dhms]))+$/.test(text)) return null
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|[dhms])/g)]
  return readWaitMs(
    parts.reduce((sum, [, amount, unit = '']) => sum + Number(amount) * (unitMs[unit] ?? 0), 0),
  )
}
