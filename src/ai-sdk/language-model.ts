import type { ModelResponse } from '../../machines/agent/model-response.js'
import { runAbortable } from '../core/base/abort.js'
import { asList, asObject, asText } from '../core/base/values.js'
import { findSchemaFamily, fitTools } from '../core/models/fit-tools.js'
import { closeTimeoutMs } from '../core/models/openai/answer-reader.js'
import { SentSecrets } from '../core/models/openai/sent-secrets.js'
import {
  ModelError,
  type ModelProvider,
  type ModelRequest,
  type ModelRequestOptions,
  type StructuredOutputSupport,
} from '../core/models/provider.js'
import { createCallBuilder, getOptionsKey } from './call-options.js'
import { toModelError } from './ai-sdk-failure.js'
import type { SupportedUrls } from './file-parts.js'
import { createPartFold, type PartFold } from './part-fold.js'
import { type AiSdkModel, checkModel } from './ai-sdk-model.js'
import { checkLanguageModelOptions, type LanguageModelOptions } from './language-model-options.js'
import type { CallOptions } from './spec.js'

/**
 * Any language model of the AI SDK as the model of an agent: Anthropic, Gemini, Bedrock, Mistral and some fifty more, by the
 * packages of AI SDK 5, 6 and 7. The package makes the requests; the loop retries them, so that its `maxRetries` plays no part.
 *
 * @example
 * import { anthropic } from '@ai-sdk/anthropic'
 *
 * createAgent({ model: languageModel(anthropic('claude-sonnet-4-5')) })
 *
 * @throws ConfigError `invalid_model` or `unsupported_model_version` for what is no such model, `invalid_option` for options
 * that no request could be made with.
 */
export function languageModel(model: AiSdkModel, options: LanguageModelOptions = {}): ModelProvider {
  checkModel(model)
  checkLanguageModelOptions(options)
  const { provider: origin, modelId } = model
  const provider = options.provider ?? getPriceName(origin)
  const callOf = createCallBuilder(model, options)
  const secrets = new SentSecrets({ headers: options.headers })
  const structuredOutput = options.structuredOutput ?? findStructuredOutput(getOptionsKey(origin))
  const made: ModelProvider = {
    provider,
    model: modelId,
    ...(structuredOutput && structuredOutput !== 'none' && { structuredOutput }),
    ...(canForbidCalls(getOptionsKey(origin), options) && { canForbidCalls: true }),
    ...(options.media && { media: options.media }),
    request: (request, callbacks) =>
      runAbortable(callbacks.signal, (own) =>
        requestModel(model, callOf, request, { ...callbacks, signal: own.signal }, secrets),
      ),
  }
  return options.limiter?.limit(made) ?? made
}

async function requestModel(
  model: AiSdkModel,
  callOf: ReturnType<typeof createCallBuilder>,
  request: ModelRequest,
  callbacks: ModelRequestOptions,
  secrets: SentSecrets,
): Promise<ModelResponse> {
  const { signal, onWarning = ignore, onSent } = callbacks
  const tellsCalls = request.stream && callbacks.onToolCallDelta !== undefined
  const fold = createPartFold(model.provider, model.specificationVersion, tellsCalls)
  try {
    const urls: SupportedUrls = (await model.supportedUrls) ?? {}
    const fitting = fitTools(request, findSchemaFamily(model.provider, model.modelId), onWarning)
    const call = { ...callOf(fitting, urls, onWarning), abortSignal: signal }
    // The package still puts the request together.
    if (onSent) setTimeout(onSent, 0)
    if (request.stream) await readStream(model, call, fold, callbacks)
    else await readWhole(model, call, fold, callbacks)
    return fold.getResponse()
  } catch (error) {
    signal.throwIfAborted()
    const { text, usage } = fold.getResponse()
    const told = toModelError(error, model.modelId, { partialText: text, usage })
    if (told.code === 'connection' && fold.finishBroken()) return fold.getResponse()
    const hidden = secrets.hideInFailure(told.failure)
    throw hidden === null ? told : new ModelError(hidden)
  }
}

async function readStream(
  model: AiSdkModel,
  call: CallOptions,
  fold: PartFold,
  callbacks: ModelRequestOptions,
): Promise<void> {
  const { signal, onActivity } = callbacks
  const answer: unknown = await model.doStream({ ...call, includeRawChunks: true } as never)
  onActivity('keep_alive')
  const reader = getStream(answer, model).getReader()
  const cancel = () => void reader.cancel(signal.reason).catch(ignore)
  signal.addEventListener('abort', cancel, { once: true })
  try {
    for (;;) {
      const { done, value } = await reader.read()
      // A cancelled reader ends like a finished one.
      signal.throwIfAborted()
      if (done) return
      const before = fold.progress
      takePart(value, fold, callbacks)
      onActivity(fold.progress > before ? 'content' : 'keep_alive')
      if (!fold.ended) continue
      void drainStream(reader)
      return
    }
  } catch (error) {
    if (!signal.aborted) cancel()
    throw error
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}

/** @throws ModelError for what is no stream */
function getStream(answer: unknown, { modelId }: AiSdkModel): ReadableStream<unknown> {
  const { stream } = (answer ?? {}) as { stream?: ReadableStream<unknown> }
  if (typeof stream?.getReader === 'function') return stream
  throw new ModelError({
    kind: 'fatal',
    code: 'invalid_response',
    message: `The package of ${modelId} gave no stream to read (doStream of its model). Update it, or ask without streaming: stream: false.`,
  })
}

/** Reads on to the end, because a wrapper of the model may wait for it; a stream that does not close is given up. */
async function drainStream(reader: ReadableStreamDefaultReader<unknown>): Promise<void> {
  const giveUp = setTimeout(() => void reader.cancel().catch(ignore), closeTimeoutMs)
  try {
    while (!(await reader.read()).done);
  } catch {
    // The answer is whole.
  } finally {
    clearTimeout(giveUp)
  }
}

function takePart(
  part: unknown,
  fold: PartFold,
  { onWarning, onDelta, onToolCallDelta, onHostedCall: onHosted }: ModelRequestOptions,
): void {
  const given = asObject(part)
  const type = asText(given?.type)
  switch (type) {
    case 'stream-start':
      emitWarnings(given?.warnings, onWarning)
      return
    case 'error':
      throw given?.error
    default: {
      const {
        text,
        reasoning,
        calls = [],
        hosted = [],
      } = type === 'finish' ? fold.finish(part) : fold.push(part)
      if (text !== '' || reasoning !== '') onDelta(text, reasoning)
      for (const call of calls) onToolCallDelta?.(call)
      for (const call of hosted) onHosted?.(call)
    }
  }
}

async function readWhole(
  model: AiSdkModel,
  call: CallOptions,
  fold: PartFold,
  { onActivity, onWarning, onHostedCall: onHosted }: ModelRequestOptions,
): Promise<void> {
  const result = await model.doGenerate(call as never)
  onActivity()
  emitWarnings(asObject(result)?.warnings, onWarning)
  for (const part of asList(asObject(result)?.content))
    for (const call of fold.push(part).hosted ?? []) onHosted?.(call)
  fold.finish(result)
}

/** What a package says that it has left out. */
function emitWarnings(warnings: unknown, onWarning: ModelRequestOptions['onWarning']): void {
  for (const warning of asList(warnings)) {
    const given = asObject(warning)
    const what = asText(given?.feature) || asText(given?.setting) || asText(asObject(given?.tool)?.name)
    const why = asText(given?.message) || asText(given?.details)
    const type = asText(given?.type)
    const code = type.startsWith('unsupported') ? 'unsupported_setting' : 'provider_warning'
    const not = code === 'unsupported_setting' && what !== '' ? `${what} is not heeded by the provider` : what
    onWarning?.(code, [not, why].filter((words) => words !== '').join(': ') || type)
  }
}

/** By the first word of the model's provider, the name that prices have, where it is another. */
const priceNames: Readonly<Record<string, string>> = {
  vertex: 'google',
  xai: 'x-ai',
  bedrock: 'aws',
  'amazon-bedrock': 'aws',
  togetherai: 'together',
}

function getPriceName(origin: string): string {
  if (origin.includes('anthropic') && !origin.includes('bedrock')) return 'anthropic'
  const name = getOptionsKey(origin)
  return Object.hasOwn(priceNames, name) ? (priceNames[name] ?? name) : name
}

/** Those whose packages pass the schema on, with every current model. */
function findStructuredOutput(name: string): StructuredOutputSupport | undefined {
  if (name === 'openai' || name === 'azure' || name === 'xai') return 'beside_tools'
  return name === 'google' || name === 'mistral' ? 'alone' : undefined
}

/** Those whose packages keep the tools where none may be called; Anthropic's leave them out. Gemini's own tools are not forbidden. */
function canForbidCalls(name: string, { providerTools }: LanguageModelOptions): boolean {
  return ['openai', 'azure', 'xai'].includes(name) || (name === 'google' && providerTools === undefined)
}

function ignore(): void {}
