import type { JsonObject } from '../../../machines/agent/json.js'
import { readWaitMs, asList, asObject, asText } from '../base/values.js'

/** What a provider says of an error, in whatever shape it says it. '' and null stand for what it leaves out. */
export interface ErrorBody {
  code: string
  type: string
  /** The path of the field that the error is about. */
  param: string
  message: string
  /** The status that the body itself names: inside a 200 stream there is no other. */
  status: number | null
  /** How long it asks us to wait, in milliseconds, where it says so itself. */
  retryAfterMs: number | null
}

/**
 * Reads the body of an error: `{ error: { message, type, code } }` (OpenAI), `{ error: '…' }` (xAI, Ollama),
 * `{ object: 'error', message, … }` (vLLM, Mistral), `{ detail }` (FastAPI), `[{ error }]` (Gemini), or plain text.
 */
export function readErrorBody(body: unknown): ErrorBody {
  if (typeof body === 'string') return { ...emptyErrorBody, message: isMarkup(body) ? '' : body.trim() }
  const outer = asObject(Array.isArray(body) ? body[0] : body)
  if (outer === null) return emptyErrorBody
  const error = asObject(outer.error) ?? outer
  return {
    code: readWord(error.code),
    type: readWord(error.type === 'error' ? undefined : error.type) || readWord(error.status),
    param: asText(error.param),
    message: readMessage(error) || asText(outer.error),
    status: readStatus(error.code) ?? readStatus(error.status) ?? readStatus(error.status_code),
    retryAfterMs: readRetryInfoMs(error.details),
  }
}

const emptyErrorBody: ErrorBody = {
  code: '',
  type: '',
  param: '',
  message: '',
  status: null,
  retryAfterMs: null,
}

/** Whether a field `error` says anything: some servers have an empty one in every answer. */
export function hasError(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return Boolean(error)
  return Object.values(error).some((value) => value !== null && value !== '')
}

/** A web page, which says nothing to people in a terminal. */
export function isMarkup(text: string): boolean {
  return text.trimStart().startsWith('<')
}

function readMessage(error: JsonObject): string {
  const said = error.message ?? error.detail
  const message = typeof said === 'object' && said !== null ? JSON.stringify(said) : asText(said)
  // A gateway such as OpenRouter says "Provider returned error" and keeps the provider's own words in here.
  const upstream = asText(asObject(error.metadata)?.raw)
  return upstream === '' ? message : `${message}: ${upstream}`
}

/** A code that is a word; numbers are statuses. */
export function readWord(value: unknown): string {
  const text = asText(value)
  return /^\d*$/.test(text) ? '' : text
}

function readStatus(value: unknown): number | null {
  const status = typeof value === 'string' ? Number(value) : value
  return typeof status === 'number' && Number.isInteger(status) && status >= 400 && status <= 599
    ? status
    : null
}

/** Google's `RetryInfo` among the details: `{ retryDelay: '48s' }`. */
function readRetryInfoMs(details: unknown): number | null {
  for (const detail of asList(details)) {
    const [, seconds] = /^(\d{1,9}(?:\.\d+)?)s$/.exec(asText(asObject(detail)?.retryDelay)) ?? []
    if (seconds !== undefined) return readWaitMs(Number(seconds) * 1000)
  }
  return null
}
