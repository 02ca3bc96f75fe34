import { listCauses } from '../base/errors.js'
import { readProperty } from '../base/json.js'

/** How far the input of requests to a model has been above the estimate, at most: by so many times, and so many tokens more. */
interface Excess {
  times: number
  tokens: number
}

/** Estimates are this much too low at first; what models report corrects it. */
const firstExcess: Excess = { times: 1.1, tokens: 0 }

/** Below so many tokens, what a provider adds to every request weighs more than how it counts text. */
const shortTokens = 500

/** The most that is learned: a multiple of the estimate, and the tokens that a provider adds to each request. */
const [mostTimes, mostAdded] = [8, 20_000]

/** By the model, as `PROVIDER/MODEL`. */
const excesses = new Map<string, Excess>()

/** The most input that a request may have, by its estimate: with a margin, and not below what the model has counted before. */
export function addInputMargin(model: string, estimated: number): number {
  const { times, tokens } = excesses.get(model) ?? firstExcess
  return Math.ceil(estimated * times + tokens)
}

/** A model counted the input of a request: the next worst case is not below that. */
export function learnInputCount(model: string, estimated: number, counted: number): void {
  const { times, tokens } = excesses.get(model) ?? firstExcess
  // One report that is far too high must not make every later request too expensive.
  const learned = Math.min(counted, estimated * mostTimes + mostAdded)
  if (learned <= estimated * times + tokens) return
  const next =
    estimated < shortTokens
      ? { times, tokens: Math.ceil(learned - estimated * times) }
      : { times: (learned - tokens) / estimated, tokens }
  excesses.set(model, next)
}

/** Errors of connections that were never there. */
const unreached = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'ENETUNREACH', 'EHOSTUNREACH'])

/** Whether a failed request has cost nothing: an answer with a status is a refusal, and what was never sent is not paid for. */
export function isUnpaid(status: number | null, error: unknown): boolean {
  return (
    status !== null || listCauses(error).some((cause) => unreached.has(String(readProperty(cause, 'code'))))
  )
}
