import type { ModelFailure } from '../../../../machines/agent/model-response.js'
import { listCustomHeaders, type OpenAIClient, type OpenAIOptions } from './openai-options.js'

const redacted = '[redacted]'

const minSecretLength = 8

const minHeadLength = 4

const maxKeys = 50

const openHeaders =
  /^(accept|content-type|content-length|user-agent|host|connection|referer|http-referer|x-title|x-stainless-.*|openai-(organization|project|beta|version)|.*-(version|beta))$/i

const secretParameters = /key|token|secret|sig|auth|pass|credential/i

/** The key, and headers and query parameters with secret names. Some providers repeat them in errors. */
export class SentSecrets {
  readonly #values = new Set<string>()
  readonly #keys: string[] = []

  constructor({ apiKey, headers, query }: Pick<OpenAIOptions, 'apiKey' | 'headers' | 'query'>) {
    if (typeof apiKey === 'string') this.#add(apiKey)
    this.#addHeaders(headers)
    this.#addHeaders(listCustomHeaders())
    for (const [name, value] of Object.entries(query ?? {})) {
      if (secretParameters.test(name)) this.#add(value)
    }
  }

  async noteWhenReady(coming: Promise<string>): Promise<string> {
    const key = await coming
    this.#noteKey(key)
    return key
  }

  /** Remembers the secrets of a custom client, or of a client that read its key from the environment. */
  noteClient(client: Pick<OpenAIClient, 'apiKey'> | undefined): void {
    if (client === undefined) return
    this.#noteKey(client.apiKey)
    const options: unknown = Reflect.get(client, '_options')
    this.#addHeaders((options as { defaultHeaders?: unknown } | undefined)?.defaultHeaders)
  }

  /** Returns null if the failure contains no secrets. */
  hideInFailure(failure: ModelFailure): ModelFailure | null {
    const [code, message] = [this.#hide(failure.code), this.#hide(failure.message)]
    return code === failure.code && message === failure.message ? null : { ...failure, code, message }
  }

  occurIn(text: string): boolean {
    return this.#hide(text) !== text
  }

  #noteKey(key: unknown): void {
    if (typeof key !== 'string' || key.length < minSecretLength || this.#keys.includes(key)) return
    this.#keys.push(key)
    if (this.#keys.length > maxKeys) this.#keys.shift()
  }

  #add(value: unknown): void {
    if (typeof value !== 'string') return
    // The scheme and the names in `Bearer KEY` and `session=ID; theme=dark` are not secret.
    const parts = value.split(/[\s;,]+/).map((one) => one.replace(/^[\w-]*=(?=.)/, ''))
    for (const part of [value.trim(), ...parts]) if (part.length >= minSecretLength) this.#values.add(part)
  }

  #addHeaders(headers: unknown): void {
    if (typeof headers !== 'object' || headers === null) return
    const entries = Symbol.iterator in headers ? [...(headers as Iterable<unknown>)] : Object.entries(headers)
    for (const entry of entries) {
      const [name, value] = Array.isArray(entry) ? (entry as unknown[]) : []
      if (typeof name === 'string' && !openHeaders.test(name)) this.#add(value)
    }
  }

  #hide(text: string): string {
    // Longest first, because one value may contain another.
    return [...this.#values, ...this.#keys]
      .flatMap((value) => [
        ...new Set([value, encodeURIComponent(value), JSON.stringify(value).slice(1, -1)]),
      ])
      .sort((a, b) => b.length - a.length)
      .reduce((rest, value) => hideCutHead(rest.replaceAll(value, redacted), value), text)
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
