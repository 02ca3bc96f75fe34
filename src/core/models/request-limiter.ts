import type { ModelProvider } from './provider.js'

/**
 * Lets requests of models go one after the other, as fast as a provider allows. `createLimiter` of `statewright/fleet` makes one.
 *
 * @example
 * const unlimited: RequestLimiter = { id: 'none', limit: (model) => model }
 * const model = openaiChat({ model: 'gpt-5-mini', apiKey: 'sk-…', limiter: unlimited })
 */
export interface RequestLimiter {
  /** For people, and for events. */
  readonly id: string
  /** The same model, whose requests wait for their turn. */
  limit(model: ModelProvider): ModelProvider
}

/** What is said of an option that is no limiter. */
export const limiterPhrase = "must be what createLimiter({ id: 'openai', requestsPerMinute: 600 }) returns."

export function isLimiter(value: unknown): value is RequestLimiter | undefined {
  return value === undefined || typeof (value as Partial<RequestLimiter> | null)?.limit === 'function'
}
