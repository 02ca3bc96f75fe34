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
import {
  type AiSdkModel,
  checkLanguageModelOptions,
  checkModel,
  type LanguageModelOptions,
} from './model-options.js'
import type { CallOptions } from './spec.js'

/**
 * Uses a language model of the AI SDK 5, 6 or 7 as the model of an agent: Anthropic, Gemini, Bedrock, Mistral and about fifty
 * others. The package sends the requests and the loop retries them, so `maxRetries` of the AI SDK does not apply.
 *
 * @example
 * import { anthropic } from '@ai-sdk/anthropic'
 *
 * createAgent({ model: languageModel(anthropic('claude-sonnet-4-5')) })
 *
 * @throws ConfigError `invalid_model`, `unsupported_model_version`, `invalid_option`
 */
export function languageModel(model: AiSdkModel, options: LanguageModelOptions = {}): ModelProvider {
  checkModel(model)
  checkLanguageModelOptions(options)
  const { provider: origin, modelId } = model
  const provider = options.provider ?? getPriceName(origin)
  const toCall = createCallBuilder(model, options)
  const secrets = new SentSecrets({ headers: options.headers })
  const structuredOutput = options.structuredOutput ?? findStructuredOutput(getOptionsKey(origin))
  const provided: ModelProvider = {
    provider,
    model: modelId,
    ...(structuredOutput && structuredOutput !== 'none' && { structuredOutput }),
    ...(canForbidCalls(getOptionsKey(origin), options) && { canForbidCalls: true }),
    ...(options.media && { media: options.media }),
    request: (request, callbacks) =>
      runAbortable(callbacks.signal, (own) =>
        requestModel(model, toCall, request, { ...callbacks, signal: own.signal }, secrets),
      ),
  }
  return options.limiter?.limit(provided) ?? provided
}

async function requestModel(
  model: AiSdkModel,
  toCall: ReturnType<typeof createCallBuilder>,
  request: ModelRequest,
  callbacks: ModelRequestOptions,
  secrets: SentSecrets,
): Promise<ModelResponse> {
  const { signal, onWarning = ignore, onSent } = callbacks
  const reportsCalls = request.stream && callbacks.onToolCallDelta !== undefined
  const fold = createPartFold(model.provider, model.specificationVersion, reportsCalls)
  try {
    const urls: SupportedUrls = (await model.supportedUrls) ?? {}
    const fitting = fitTools(request, findSchemaFamily(model.provider, model.modelId), onWarning)
    const call = { ...toCall(fitting, urls, onWarning), abortSignal: signal }
    // The package still has to create the request.
    if (onSent) setTimeout(onSent, 0)
    if (request.stream) await readStream(model, call, fold, callbacks)
    else await readWhole(model, call, fold, callbacks)
    return fold.getResponse()
  } catch (error) {
    signal.throwIfAborted()
    const { text, usage } = fold.getResponse()
    const failed = toModelError(error, model.modelId, { partialText: text, usage })
    if (failed.code === 'connection' && fold.finishBroken()) return fold.getResponse()
    const hidden = secrets.hideInFailure(failed.failure)
    throw hidden === null ? failed : new ModelError(hidden)
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

function getStream(answer: unknown, { modelId }: AiSdkModel): ReadableStream<unknown> {
  const { stream } = (answer ?? {}) as { stream?: ReadableStream<unknown> }
  if (typeof stream?.getReader === 'function') return stream
  throw new ModelError({
    kind: 'fatal',
    code: 'invalid_response',
    message: `The package of ${modelId} returned no stream from doStream. Update it, or disable streaming: stream: false.`,
  })
}

/** Reads to the end, because a wrapper of the model may wait for it. Stops after a timeout. */
async function drainStream(reader: ReadableStreamDefaultReader<unknown>): Promise<void> {
  const timer = setTimeout(() => void reader.cancel().catch(ignore), closeTimeoutMs)
  try {
    while (!(await reader.read()).done);
  } catch {
    // The answer is complete.
  } finally {
    clearTimeout(timer)
  }
}

function takePart(
  part: unknown,
  fold: PartFold,
  { onWarning, onDelta, onToolCallDelta, onHostedCall: onHosted }: ModelRequestOptions,
): void {
  const object = asObject(part)
  const type = asText(object?.type)
  switch (type) {
    case 'stream-start':
      emitWarnings(object?.warnings, onWarning)
      return
    case 'error':
      throw object?.error
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

/** Reports settings that the package ignores. */
function emitWarnings(warnings: unknown, onWarning: ModelRequestOptions['onWarning']): void {
  for (const warning of asList(warnings)) {
    const { feature, setting, tool, message, details, ...rest } = asObject(warning) ?? {}
    const subject = asText(feature) || asText(setting) || asText(asObject(tool)?.name)
    const reason = asText(message) || asText(details)
    const type = asText(rest['type'])
    const code = type.startsWith('unsupported') ? 'unsupported_setting' : 'provider_warning'
    const isIgnored = code === 'unsupported_setting' && subject !== ''
    const text = isIgnored ? `${subject} is ignored by the provider` : subject
    onWarning?.(code, [text, reason].filter((words) => words !== '').join(': ') || type)
  }
}

/** Provider names in the price table, if they differ. */
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

/** Providers whose packages support output schemas for every current model. */
function findStructuredOutput(name: string): StructuredOutputSupport | undefined {
  if (name === 'openai' || name === 'azure' || name === 'xai') return 'beside_tools'
  return name === 'google' || name === 'mistral' ? 'alone' : undefined
}

/** Whether the package keeps the tools if calls are forbidden. Anthropic's drops them, and Gemini's own tools cannot be forbidden. */
function canForbidCalls(name: string, { providerTools }: LanguageModelOptions): boolean {
  return ['openai', 'azure', 'xai'].includes(name) || (name === 'google' && providerTools === undefined)
}

function ignore(): void {}
