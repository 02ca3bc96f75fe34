import type { Message, AssistantMessage } from '../../../machines/agent/messages.js'
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
import { listMedia } from './leave-out.js'
import { refuseUnsupportedMedia, toAcceptedMessages } from './result-media.js'

/** One of the models, and what its answers are marked with. */
interface Candidate extends MarkedModel {
  model: ModelProvider
}

const modelsByProvider = new WeakMap<ModelProvider, readonly ModelProvider[]>()

/**
 * The first of these models that answers. Another is asked, at once, when one is overloaded, rate limited, out of quota or
 * cannot be reached; not for a request that is wrong, nor for a key that is refused. It is told as `retry`, with the model's name;
 * usage is priced by the model that had it. The one that answered is asked first for the rest of the run, also after a
 * resume; the next message of the user begins with the first again. What one wants back with its answers, the others are not sent.
 *
 * @example
 * const model = withFallbacks([openaiResponses({ model: 'gpt-5' }), openaiChat({ model: 'llama3.3', baseURL: 'http://localhost:11434/v1' })])
 *
 * @throws ConfigError for a list with nothing in it, or with what is no model
 */
export function withFallbacks(models: readonly ModelProvider[]): ModelProvider {
  const all = checkModels(models)
  const candidates = all.map((model, i): Candidate => {
    const called = `${model.provider}/${model.model}`
    const before = all.slice(0, i).filter((other) => `${other.provider}/${other.model}` === called).length
    return { model, name: before === 0 ? called : `${called}#${before + 1}`, strippedMessages: new WeakMap() }
  })
  const [first] = all as [ModelProvider]
  const echoes = all.map((model) => model.echoesReasoning)
  const echoesReasoning = (['always', 'with_calls'] as const).find((one) => echoes.includes(one))
  const structuredOutput = findWeakestSupport(all.map((model) => model.structuredOutput))
  /** The model to ask about this transcript after another one did not answer it. */
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
      const order = orderCandidates(candidates, silenced?.at ?? chosen)
      let failure = silenced?.failure ?? null
      /** The first that time may mend. */
      let passing = failure
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
            const ready = options.onFallback?.(getIdentity(candidate), failure)
            if (ready) await ready
          }
          try {
            const own = toOwnRequest(candidate, request, order.slice(turn + 1))
            const answer = options.around
              ? await options.around(() => candidate.model.request(own, options))
              : await candidate.model.request(own, options)
            return { ...answer, by: candidate.name }
          } catch (error) {
            failure = toModelFailure(error)
            if (options.signal.aborted || !isModelSpecific(failure)) throw error
            if (isTransient(failure)) passing ??= failure
            else if (turn === order.length - 1 && passing !== null)
              throw createTransientError(passing, failure)
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
  const given: unknown[] = Array.isArray(models) ? models : []
  if (given.length === 0)
    throw new ConfigError(
      'invalid_option',
      'withFallbacks needs a list of models: withFallbacks([openaiChat({ … }), …]).',
      'models',
    )
  return given.flatMap((model, i) => {
    const { provider, model: name, request } = (model ?? {}) as Partial<ModelProvider>
    if (typeof request === 'function' && typeof provider === 'string' && typeof name === 'string')
      return modelsByProvider.get(model as ModelProvider) ?? [model as ModelProvider]
    const at = `models[${i}]`
    throw new ConfigError(
      'invalid_option',
      `withFallbacks: ${at} must be a model, such as openaiChat({ model: 'gpt-5-mini' }).`,
      at,
    )
  })
}

/** What all of them heed. */
function findWeakestSupport(
  support: readonly (StructuredOutputSupport | undefined)[],
): StructuredOutputSupport | undefined {
  if (support.includes(undefined)) return undefined
  return support.includes('alone') ? 'alone' : 'beside_tools'
}

/** The model that answered in this run; -1 when none of these did. */
function findAnsweredCandidate(messages: readonly Message[], candidates: readonly Candidate[]): number {
  const begun = messages.findLastIndex(({ role, internal, data }) => {
    return role === 'user' && internal !== true && data?.['reason'] !== 'steering'
  })
  const answer = messages
    .slice(begun + 1)
    .findLast((message) => message.role === 'assistant' && message.by !== undefined)
  return candidates.findIndex(({ name }) => answer?.role === 'assistant' && answer.by === name)
}

function orderCandidates(candidates: readonly Candidate[], from: number): Candidate[] {
  const start = candidates[from] ?? (candidates[0] as Candidate)
  return [start, ...candidates.filter((other) => other !== start)]
}

function getIdentity({
  model: { provider, model, endpoint },
}: Candidate): Pick<ModelProvider, 'provider' | 'model' | 'endpoint'> {
  return { provider, model, ...(endpoint && { endpoint }) }
}

/**
 * The request as this model takes it.
 * @throws ModelError `unsupported_content` where a picture would be left out that a later model takes
 */
function toOwnRequest(
  candidate: Candidate,
  request: ModelRequest,
  later: readonly Candidate[],
): ModelRequest {
  const { refused } = request
  const accepted = ({ model }: Candidate) => toAcceptedMessages(request.messages, refused, model)
  const messages = accepted(candidate)
  refuseUnsupportedMedia(messages, candidate.model)
  const count = countMedia(messages)
  if (refused && later.some((other) => countMedia(accepted(other)) > count)) {
    throw new ModelError({
      kind: 'fatal',
      code: 'unsupported_content',
      message: `${candidate.model.model} has refused a picture, sound or document of this session.`,
    })
  }
  return { ...request, messages: messages.map((message) => stripForeignEcho(candidate, message)) }
}

function countMedia(messages: readonly Message[]): number {
  return messages.reduce((count, message) => count + listMedia(message).length, 0)
}

/**
 * Whether another model may do what this one could not: it is overloaded, its account is used up, it does not answer, or it takes
 * no pictures.
 */
function isModelSpecific(failure: ModelFailure): boolean {
  const { kind, status, code } = failure
  if (isTransient(failure)) return true
  if (code === 'unsupported_content') return true
  return kind === 'fatal' && (status === 402 || status === 429 || quotaCodes.test(code))
}

function isTransient({ kind }: ModelFailure): boolean {
  return kind === 'transient' || kind === 'rate_limit'
}

/**
 * The failure of a request that no model has answered, where one of the models may answer it soon: that another takes no pictures,
 * or has nothing left on its account, is no reason to give up. What was said before has been told and paid for already.
 */
function createTransientError(passing: ModelFailure, { partialText, usage }: ModelFailure): ModelError {
  return new ModelError({ ...passing, partialText, usage })
}

const quotaCodes = /insufficient|billing|balance|payment|credit|quota|hard_limit/i

/** One of several models of an agent: its answers are marked with its name. */
export interface MarkedModel {
  name: string
  /** Messages as it is sent them. */
  strippedMessages: WeakMap<AssistantMessage, AssistantMessage>
}

/** Without what another has given to be sent back to itself alone. The same object each time: providers know messages by that. */
export function stripForeignEcho({ name, strippedMessages }: MarkedModel, message: Message): Message {
  if (message.role !== 'assistant' || message.by === undefined || message.by === name) return message
  const known = strippedMessages.get(message)
  if (known !== undefined) return known
  const { reasoning: _thoughts, reasoning_details: _details, provider_items: _items, ...rest } = message
  const { tool_calls: calls } = message
  const plain: AssistantMessage = {
    ...rest,
    ...(calls && { tool_calls: calls.map(({ extra_content: _extra, hosted: _hosted, ...call }) => call) }),
  }
  strippedMessages.set(message, plain)
  return plain
}

/**
 * A model among others of an agent: it marks its answers, and is not sent what another wants back with its own. One with
 * fallbacks does that by itself. The same for the same model.
 */
export function getMarkedModel(model: ModelProvider): ModelProvider {
  if (model.fallbacks) return model
  const known = markedModels.get(model) ?? createMarkedModel(model)
  markedModels.set(model, known)
  return known
}

const markedModels = new WeakMap<ModelProvider, ModelProvider>()

function createMarkedModel(whole: ModelProvider): ModelProvider {
  const mark: MarkedModel = { name: `${whole.provider}/${whole.model}`, strippedMessages: new WeakMap() }
  return replaceRequest(whole, async (request, options) => {
    const messages = request.messages.map((message) => stripForeignEcho(mark, message))
    return { ...(await whole.request({ ...request, messages }, options)), by: mark.name }
  })
}

/** The model with another `request`: all that it says of itself stays, also where its class has it as getters. */
export function replaceRequest(whole: ModelProvider, request: ModelProvider['request']): ModelProvider {
  const { provider, model, fallbacks, structuredOutput, canForbidCalls, searchesTools } = whole
  const { media, echoesReasoning, endpoint } = whole
  return {
    provider,
    model,
    ...(fallbacks && { fallbacks }),
    ...(structuredOutput && { structuredOutput }),
    ...(canForbidCalls !== undefined && { canForbidCalls }),
    ...(searchesTools !== undefined && { searchesTools }),
    ...(media && { media }),
    ...(echoesReasoning && { echoesReasoning }),
    ...(endpoint && { endpoint }),
    ...(whole.check && { check: () => whole.check?.() }),
    request,
  }
}
