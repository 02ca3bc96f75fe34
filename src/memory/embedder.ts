import type { OpenAI } from 'openai'
import { sha256 } from '../../guards/lib/sha256.js'
import { loadOnce } from '../core/base/platform.js'
import { toWellFormed } from '../core/models/plain-json.js'
import type { SharedBudget } from '../core/budgets/shared-budget.js'
import { MemoryError } from '../core/memory/retriever.js'

/**
 * Embeddings beside the words that are searched for.
 *
 * @example memory({ documents, embeddings: { client: new OpenAI(), model: 'text-embedding-3-small' } })
 */
export interface EmbeddingOptions {
  /** An OpenAI client, or any other whose `embeddings.create` is the same. It retries as it is set up to. */
  client: { embeddings: Pick<OpenAI['embeddings'], 'create'> }
  /** The embedding model, as the provider names it. */
  model: string
  /** Numbers a vector, for models that can shorten them. Default: the model's own. */
  dimensions?: number
  /** Texts a request. Default 64. */
  batch?: number
  /**
   * `hybrid`: words and vectors count half each. `vector`: vectors alone. Default `hybrid`, which also finds what
   * vectors are bad at: names, codes, numbers.
   */
  mode?: 'hybrid' | 'vector'
  /**
   * Shared budgets that pay for the embeddings, of documents and of queries: what `createBudget` of `statewright/fleet`
   * makes. Each request reserves what it may cost before it is sent.
   */
  budgets?: readonly SharedBudget[]
  /** USD per million tokens, for budgets in USD. Default: the price of the model in the built-in table. */
  inputPerMillion?: number
}

const loadPayment = loadOnce(() => import('./paid-embeddings.js'))

export type Vector = readonly number[]

/** Turns texts into vectors, each text once. */
export class Embedder {
  /** By the hash of the text. */
  readonly #known = new Map<string, Vector>()
  readonly #options: EmbeddingOptions
  #size: number | undefined

  constructor(options: EmbeddingOptions) {
    this.#options = options
  }

  /** Numbers a vector; known once there is one. */
  get size(): number | undefined {
    return this.#size
  }

  /**
   * Makes the vectors that are still missing. What one batch has brought stays when a later one fails.
   * @throws {MemoryError} `invalid_embeddings`; what the client throws
   */
  async prepare(texts: readonly string[], signal: AbortSignal): Promise<void> {
    const missing = new Map<string, string>()
    for (const text of texts) {
      const key = sha256(text)
      if (!this.#known.has(key)) missing.set(key, text)
    }
    const entries = [...missing]
    const { batch = 64 } = this.#options
    for (let from = 0; from < entries.length; from += batch) {
      const part = entries.slice(from, from + batch)
      const vectors = await this.#request(
        part.map(([, text]) => text),
        signal,
      )
      part.forEach(([key], index) => this.learn(key, vectors[index] ?? []))
    }
  }

  /** The vector of a text that is prepared. */
  findVector(text: string): Vector | undefined {
    return this.#known.get(sha256(text))
  }

  /** The vector of a query. It is not kept: queries are without end. */
  async embedQuery(text: string, signal: AbortSignal): Promise<Vector> {
    const [vector = []] = await this.#request([text], signal)
    this.#checkSize(vector)
    return vector
  }

  /** Takes a vector that was made earlier, under the hash of its text. */
  learn(key: string, vector: Vector): void {
    this.#checkSize(vector)
    this.#size = vector.length
    this.#known.set(key, vector)
  }

  /** The vectors of these texts, by hash; all others are forgotten. */
  retain(texts: Iterable<string>): Map<string, Vector> {
    const keys = new Set([...texts].map((text) => sha256(text)))
    for (const key of this.#known.keys()) if (!keys.has(key)) this.#known.delete(key)
    return this.#known
  }

  async #request(input: string[], signal: AbortSignal): Promise<Vector[]> {
    const { client, model, dimensions } = this.#options
    const ask = () =>
      client.embeddings.create(
        // Asked for floats: the client's own default, base64, is not what every compatible server speaks.
        {
          model,
          input: toWellFormed(input),
          encoding_format: 'float',
          ...(dimensions !== undefined && { dimensions }),
        },
        { signal },
      )
    const { budgets = [] } = this.#options
    const { data } = await (budgets.length === 0
      ? ask()
      : (await loadPayment()).payForEmbeddings(this.#options, input, signal, ask))
    return readVectors(data, input.length)
  }

  #checkSize(vector: Vector): void {
    const { dimensions } = this.#options
    const size = this.#size ?? dimensions ?? vector.length
    if (vector.length === size) return
    throw invalidEmbeddingsError(`a vector has ${vector.length} numbers instead of ${size}`)
  }
}

/** The vectors in the order of the texts, which is not promised to be the order of the answer. */
function readVectors(data: unknown, count: number): Vector[] {
  if (!Array.isArray(data) || data.length !== count) {
    throw invalidEmbeddingsError(
      `it has ${Array.isArray(data) ? data.length : 'no'} vectors for ${count} texts`,
    )
  }
  const vectors: Vector[] = []
  data.forEach((item: unknown, position) => {
    const { index = position, embedding } = (item ?? {}) as { index?: unknown; embedding?: unknown }
    if (!isVector(embedding)) throw invalidEmbeddingsError('an embedding is not a list of numbers')
    vectors[Number(index)] = embedding
  })
  if (vectors.length !== count || vectors.includes(undefined as never)) {
    throw invalidEmbeddingsError('the indices of its vectors are not those of the texts')
  }
  return vectors
}

function isVector(value: unknown): value is Vector {
  return Array.isArray(value) && value.length > 0 && value.every((number) => Number.isFinite(number))
}

function invalidEmbeddingsError(why: string): MemoryError {
  return new MemoryError(
    'invalid_embeddings',
    `The embeddings endpoint's answer cannot be used: ${why}. Check the model and the client's base URL.`,
    'embeddings',
  )
}
