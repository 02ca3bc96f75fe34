import type { Message } from '../../../machines/agent/messages.js'
import type { ModelFailure } from '../../../machines/agent/model-response.js'
import { onAbort } from '../base/abort.js'
import { ConfigError } from '../base/errors.js'
import { toModelFailure } from './to-model-failure.js'
import {
  ModelError,
  type ModelProvider,
  type ModelRequest,
  type StructuredOutputSupport,
} from './provider.js'
import { listMedia, stripForeignEcho } from './leave-out.js'
import { refuseUnsupportedMedia, toAcceptedMessages } from './result-media.js'

interface Candidate {
  model: ModelProvider
  name: string
}

const modelsByProvider = new WeakMap<ModelProvider, readonly ModelProvider[]>()

/**
 * Returns a model that tries each of the given models in order. The next model is tried if a model is overloaded, rate
 * limited, out of quota or unreachable, but not for an invalid request or a rejected key. Each switch emits a `retry`
 * event with the name of the model, and usage is priced per model. The model that answered stays first for the rest of
 * the run, even after a resume. The next user message starts with the first model again. Provider-specific data, such
 * as encrypted reasoning, is only sent back to the model it came from.
 *
 * @example
 * const model = withFallbacks([openaiResponses({ model: 'gpt-5' }), openaiChat({ model: 'llama3.3', baseURL: 'http://localhost:11434/v1' })])
 *
 * @throws ConfigError for an empty list, or an item that is not a model
 */
export function withFallbacks(models: readonly ModelProvider[]): ModelProvider {
  const all = checkModels(models)
  const candidates = all.map((model, i): Candidate => {
    const called = `${model.provider}/${model.model}`
    const before = all.slice(0, i).filter((other) => `${other.provider}/${other.model}` === called).length
    return { model, name: before === 0 ? called : `${called}#${before + 1}` }
  })
  const [first] = all as [ModelProvider]
  const echoes = all.map((model) => model.echoesReasoning)
  const echoesReasoning = (['always', 'with_calls'] as const).find((one) => echoes.includes(one))
  const structuredOutput = findWeakestSupport(all.map((model) => model.structuredOutput))
  const instead = new WeakMap<Message, { at: number; failure: ModelFailure }>()

  const provider: ModelProvider = {
    provider: first.provider,
    model: first.model,
    fallbacks: all.slice(1).map(({ provider, model }) => ({ provider, model })),
    ...(first.endpoint && { endpoint: first.endpoint }),
    ...(structuredOutput && { structuredOutput }),
    ...(all.every((model) => model.canForbidCalls) && { canForbidCalls: true }),
    ...(all.every((model) => model.searchesTools) && { searchesTools: true }),
    ...(echoesReasoning && { echoesReasoning }),
    check() {
      for (const model of all) model.check?.()
    },
    async request(request, options) {
      const last = request.messages.at(-1)
      const silenced = last && instead.get(last)
      if (last) instead.delete(last)
      const chosen = Math.max(0, findAnsweredCandidate(request.messages, candidates))
      const start = candidates[silenced?.at ?? chosen] as Candidate
      const order = [start, ...candidates.filter((other) => other !== start)]
      let failure = silenced?.failure ?? null
      /** The first failure that a later attempt may avoid. */
      let passing = failure
      let lastError: unknown
      let turn = 0
      const stop = onAbort(options.signal, () => {
        const silence = toModelFailure(options.signal.reason)
        const next = order[turn + 1]
        if (last && next && silence.code === 'idle_timeout')
          instead.set(last, { at: candidates.indexOf(next), failure: silence })
      })
      try {
        for (;;) {
          const candidate = order[turn] as Candidate
          if (candidate.model !== first || failure !== null) {
            const { provider, model, endpoint } = candidate.model
            const next = { provider, model, ...(endpoint && { endpoint }) }
            const ready = options.onFallback?.(next, failure, lastError)
            if (ready) await ready
          }
          try {
            const own = toOwnRequest(candidate, request, order.slice(turn + 1))
            const answer = options.around
              ? await options.around(() => candidate.model.request(own, options))
              : await candidate.model.request(own, options)
            return { ...answer, by: candidate.name }
          } catch (error) {
            lastError = error
            failure = toModelFailure(error)
            if (options.signal.aborted || !isModelSpecific(failure)) throw error
            if (isTransient(failure)) passing ??= failure
            else if (turn === order.length - 1 && passing !== null) {
              // A failure because of quota or media must not hide the error of a model that may recover.
              const { partialText, usage } = failure
              throw new ModelError({ ...passing, partialText, usage }, { cause: error })
            }
            if (turn === order.length - 1) throw error
            turn += 1
          }
        }
      } finally {
        stop()
      }
    },
  }
  modelsByProvider.set(provider, all)
  return provider
}

function checkModels(models: unknown): readonly ModelProvider[] {
  const input: unknown[] = Array.isArray(models) ? models : []
  const refuse = (message: string, at: string): never => {
    throw new ConfigError('invalid_option', message, at)
  }
  if (input.length === 0)
    refuse('withFallbacks needs a list of models: withFallbacks([openaiChat({ … }), …]).', 'models')
  return input.flatMap((model, i) => {
    const { provider, model: name, request } = (model ?? {}) as Partial<ModelProvider>
    if (typeof request === 'function' && typeof provider === 'string' && typeof name === 'string')
      return modelsByProvider.get(model as ModelProvider) ?? [model as ModelProvider]
    const at = `models[${i}]`
    return refuse(`withFallbacks: ${at} must be a model, such as openaiChat({ model: 'gpt-5-mini' }).`, at)
  })
}

function findWeakestSupport(support: readonly (StructuredOutputSupport | undefined)[]) {
  if (support.includes(undefined)) return undefined
  return support.includes('alone') ? 'alone' : 'beside_tools'
}

function findAnsweredCandidate(messages: readonly Message[], candidates: readonly Candidate[]): number {
  const begun = messages.findLastIndex(({ role, internal, data }) => {
    return role === 'user' && internal !== true && data?.['reason'] !== 'steering'
  })
  const names = messages.slice(begun + 1).map((message) => message.role === 'assistant' && message.by)
  const last = names.findLast(Boolean)
  return candidates.findIndex(({ name }) => name === last)
}

/** @throws ModelError `unsupported_content` if an image would be omitted that a later model accepts */
function toOwnRequest(candidate: Candidate, request: ModelRequest, later: readonly Candidate[]) {
  const { refused } = request
  const accepted = ({ model }: Candidate) => toAcceptedMessages(request.messages, refused, model)
  const messages = accepted(candidate)
  refuseUnsupportedMedia(messages, candidate.model)
  const count = countMedia(messages)
  if (refused && later.some((other) => countMedia(accepted(other)) > count)) {
    const message = `${candidate.model.model} refused an image, audio or document of this session.`
    throw new ModelError({ kind: 'fatal', code: 'unsupported_content', message })
  }
  return { ...request, messages: messages.map((message) => stripForeignEcho(candidate.name, message)) }
}

function countMedia(messages: readonly Message[]): number {
  return messages.reduce((count, message) => count + listMedia(message).length, 0)
}

function isModelSpecific(failure: ModelFailure): boolean {
  const { kind, status, code } = failure
  if (isTransient(failure) || code === 'unsupported_content') return true
  return kind === 'fatal' && (status === 402 || status === 429 || quotaCodes.test(code))
}

function isTransient({ kind }: ModelFailure): boolean {
  return kind === 'transient' || kind === 'rate_limit'
}

const quotaCodes = /insufficient|billing|balance|payment|credit|quota|hard_limit/i
