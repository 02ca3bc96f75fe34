import type { JsonObject } from '../../machines/agent/json.js'
import { asObject, asText } from './as-json.js'

/** What a provider says of an error, in whatever shape it says it. '' and null stand for what it leaves out. */
export interface ErrorBody {
  code: string
  type: string
  message: string
  /** The status that the body itself names: inside a 200 stream there is no other. */
  status: number | null
}

/**
 * Reads the body of an error: `{ error: { message, type, code } }` (OpenAI), `{ error: '…' }` (xAI, Ollama),
 * `{ object: 'error', message, … }` (vLLM, Mistral), `{ detail }` (FastAPI), `[{ error }]` (Gemini), or plain text.
 */
export function readErrorBody(body: unknown): ErrorBody {
  if (typeof body === 'string')
    return { code: '', type: '', message: isMarkup(body) ? '' : body.trim(), status: null }
  const outer = asObject(Array.isArray(body) ? body[0] : body)
  if (outer === null) return { code: '', type: '', message: '', status: null }
  const error = asObject(outer.error) ?? outer
  return {
    code: wordOf(error.code),
    type: wordOf(error.type === 'error' ? undefined : error.type) || wordOf(error.status),
    message: messageOf(error) || asText(outer.error),
    status: statusOf(error.code) ?? statusOf(error.status) ?? statusOf(error.status_code),
  }
}

/** A web page, which says nothing to people in a terminal. */
export function isMarkup(text: string): boolean {
  return text.trimStart().startsWith('<')
}

function messageOf(error: JsonObject): string {
  const said = error.message ?? error.detail
  const message = typeof said === 'object' && said !== null ? JSON.stringify(said) : asText(said)
  // A gateway such as OpenRouter says "Provider returned error" and keeps the provider's own words in here.
  const upstream = asText(asObject(error.metadata)?.raw)
  return upstream === '' ? message : `${message}: ${upstream}`
}

/** A code that is a word; numbers are statuses. */
function wordOf(value: unknown): string {
  const text = asText(value)
  return /^\d*$/.test(text) ? '' : text
}

function statusOf(value: unknown): number | null {
  const status = typeof value === 'string' ? Number(value) : value
  return typeof status === 'number' && Number.isInteger(status) && status >= 400 && status <= 599
    ? status
    : null
}
