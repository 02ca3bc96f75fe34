import type { OpenAI } from 'openai'
import type { ModelFailure } from '../../../../machines/agent/model-response.js'
import type { OpenAIOptions } from './openai-options.js'

const redacted = '[redacted]'

/** Shorter values are words that texts are full of. */
const minSecretLength = 8

/** A cut text may end in so little of a value. */
const minHeadLength = 4

/** Keys that a function has given; those of long ago are no keys any more. */
const maxKeys = 50

/** Headers that everybody may read, and that sentences for people may name. */
const openHeaders =
  /^(accept|content-type|content-length|user-agent|host|connection|referer|http-referer|x-title|x-stainless-.*|openai-(organization|project|beta|version)|.*-(version|beta))$/i

const secretParameters = /key|token|secret|sig|auth|pass|credential/i

/**
 * What a model's requests carry that only its provider may read: the key, wherever it comes from, and the values
 * of headers and of query parameters that are named like secrets. Some providers repeat them in their errors.
 */
export class SentSecrets {
  readonly #values = new Set<string>()
  readonly #keys: string[] = []

  constructor({ apiKey, headers, query }: Pick<OpenAIOptions, 'apiKey' | 'headers' | 'query'>) {
    if (typeof apiKey === 'string') this.#add(apiKey)
    this.#addHeaders(headers)
    for (const [name, value] of Object.entries(query ?? {})) {
      if (secretParameters.test(name)) this.#add(value)
    }
  }

  /** A key that holds for some requests, as soon as it is there. */
  async noteWhenReady(coming: Promise<string>): Promise<string> {
    const key = await coming
    this.#noteKey(key)
    return key
  }

  /** What a client sends that was made elsewhere, or has read its key in the environment. */
  noteClient(client: Pick<OpenAI, 'apiKey'> | undefined): void {
    if (client === undefined) return
    this.#noteKey(client.apiKey)
    const options: unknown = Reflect.get(client, '_options')
    this.#addHeaders((options as { defaultHeaders?: unknown } | undefined)?.defaultHeaders)
  }

  /** The failure without them; null when there are none in it. */
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
    // `Bearer KEY`, `session=ID; theme=dark`: the scheme and the names are no secrets.
    for (const part of [
      value.trim(),
      ...value.split(/[\s;,]+/).map((one) => one.replace(/^[\w-]*=(?=.)/, '')),
    ]) {
      if (part.length >= minSecretLength) this.#values.add(part)
    }
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
    // The longest first: one may be a part of another.
    return [...this.#values, ...this.#keys]
      .flatMap((value) => [
        ...new Set([value, encodeURIComponent(value), JSON.stringify(value).slice(1, -1)]),
      ])
      .sort((a, b) => b.length - a.length)
      .reduce((rest, value) => hideCutHead(rest.replaceAll(value, redacted), value), text)
  }
}

/** Without the beginning of a value that is cut off at a `…`. */
function hideCutHead(text: string, value: string): string {
  return text.replace(/[^\s…]{4,}(?=…)/g, (word) => {
    for (let length = Math.min(word.length, value.length); length >= minHeadLength; length -= 1) {
      if (word.endsWith(value.slice(0, length))) return word.slice(0, -length) + redacted
    }
    return word
  })
}
