import type { ModelFailure } from '../../../../machines/agent/model-response.js'
import { listCustomHeaders, type OpenAIClient, type OpenAIOptions } from './openai-options.js'

const redacted = '[redacted]'

const minSecretLength = 8

const minHeadLength = 4

const maxKeys = 50

const openHeaders =
  /^(accept|content-type|content-length|user-agent|host|connection|referer|http-referer|x-title|x-stainless-.*|openai-(organization|project|beta|version)|.*-(version|beta))$/i

const secretParameters = /key|token|secret|sig|auth|pass|credential/i

export type SentSecrets = ReturnType<typeof createSentSecrets>

/** The key, and headers and query parameters with secret names. Some providers repeat them in errors. */
export function createSentSecrets(options: Pick<OpenAIOptions, 'apiKey' | 'headers' | 'query'>) {
  const values = new Set<string>()
  const keys: string[] = []

  function noteKey(key: unknown): void {
    if (typeof key !== 'string' || key.length < minSecretLength || keys.includes(key)) return
    keys.push(key)
    if (keys.length > maxKeys) keys.shift()
  }

  function add(value: unknown): void {
    if (typeof value !== 'string') return
    // The scheme and the names in `Bearer KEY` and `session=ID; theme=dark` are not secret.
    const parts = value.split(/[\s;,]+/).map((one) => one.replace(/^[\w-]*=(?=.)/, ''))
    for (const part of [value.trim(), ...parts]) if (part.length >= minSecretLength) values.add(part)
  }

  function addHeaders(headers: unknown): void {
    if (typeof headers !== 'object' || headers === null) return
    const entries = Symbol.iterator in headers ? [...(headers as Iterable<unknown>)] : Object.entries(headers)
    for (const entry of entries) {
      const [name, value] = Array.isArray(entry) ? (entry as unknown[]) : []
      if (typeof name === 'string' && !openHeaders.test(name)) add(value)
    }
  }

  function hide(text: string): string {
    // Longest first, because one value may contain another.
    return [...values, ...keys]
      .flatMap((value) => [
        ...new Set([value, encodeURIComponent(value), JSON.stringify(value).slice(1, -1)]),
      ])
      .sort((a, b) => b.length - a.length)
      .reduce((rest, value) => hideCutHead(rest.replaceAll(value, redacted), value), text)
  }

  add(options.apiKey)
  addHeaders(options.headers)
  addHeaders(listCustomHeaders())
  for (const [name, value] of Object.entries(options.query ?? {})) if (secretParameters.test(name)) add(value)

  return {
    async noteWhenReady(coming: Promise<string>): Promise<string> {
      const key = await coming
      noteKey(key)
      return key
    },

    /** Remembers the secrets of a custom client, or of a client that read its key from the environment. */
    noteClient(client: Pick<OpenAIClient, 'apiKey'> | undefined): void {
      if (client === undefined) return
      noteKey(client.apiKey)
      const settings: unknown = Reflect.get(client, '_options')
      addHeaders((settings as { defaultHeaders?: unknown } | undefined)?.defaultHeaders)
    },

    /** Returns null if the failure contains no secrets. */
    hideInFailure(failure: ModelFailure): ModelFailure | null {
      const [code, message] = [hide(failure.code), hide(failure.message)]
      return code === failure.code && message === failure.message ? null : { ...failure, code, message }
    },

    occurIn: (text: string): boolean => hide(text) !== text,
  }
}

function hideCutHead(text: string, value: string): string {
  return text.replace(/[^\s…]{4,}(?=…)/g, (word) => {
    for (let length = Math.min(word.length, value.length); length >= minHeadLength; length -= 1) {
      if (word.endsWith(value.slice(0, length))) return word.slice(0, -length) + redacted
    }
    return word
  })
}
