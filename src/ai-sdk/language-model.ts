import type { ModelResponse } from '../../machines/agent/model-response.js'
import { runAbortable } from '../core/base/abort.js'
import { asList, asObject, asText, getOrCreate } from '../core/base/values.js'
import { omitUndefined } from '../../guards/lib/json.js'
import { findSchemaFamily, fitTools } from '../core/models/fit-tools.js'
import { closeTimeoutMs } from '../core/models/openai/answer-reader.js'
import { createSentSecrets, type SentSecrets } from '../core/models/openai/sent-secrets.js'
import {
  ModelError,
  type ModelProvider,
  type ModelRequest,
  type ModelRequestOptions,
  type StructuredOutputSupport,
  type ToolChoice,
  type ToolSpec,
} from '../core/models/provider.js'
import { toModelError } from './ai-sdk-failure.js'
import { createPartFold } from './part-fold.js'
import {
  type AiSdkModel,
  checkLanguageModelOptions,
  checkModel,
  type LanguageModelOptions,
} from './model-options.js'
import type { CallOptions, CallTool, PromptMessage, ProviderData } from './spec.js'
import type { JsonObject } from '../../machines/agent/json.js'
import type { Message } from '../../machines/agent/messages.js'
import { sha256 } from '../../guards/lib/sha256.js'
import { createCallIdMapper } from '../core/models/openai/wire-messages.js'
import { toWellFormed } from '../core/models/plain-json.js'
import { findCacheMark, type PromptTarget, type SupportedUrls, toPrompt } from './prompt.js'
import { isCompaction } from './provider-echo.js'

/**
 * Uses a language model from the AI SDK 5, 6 or 7 as an agent's model: Anthropic, Gemini, Bedrock, Mistral and about
 * fifty others. The package sends the requests and the loop retries them, so the AI SDK's `maxRetries` does not apply.
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
  const secrets = createSentSecrets({ headers: options.headers })
  const structuredOutput = options.structuredOutput ?? findStructuredOutput(getOptionsKey(origin))
  const provided: ModelProvider = {
    provider,
    model: modelId,
    ...(structuredOutput && structuredOutput !== 'none' && { structuredOutput }),
    ...(canForbidCalls(getOptionsKey(origin), options) && { canForbidCalls: true }),
    ...(options.media && { media: options.media }),
    request: (request, callbacks) =>
      runAbortable(callbacks.signal, (own) =>
        requestResponse(model, toCall, request, { ...callbacks, signal: own.signal }, secrets),
      ),
  }
  return options.limiter?.limit(provided) ?? provided
}

async function requestResponse(
  model: AiSdkModel,
  toCall: ReturnType<typeof createCallBuilder>,
  request: ModelRequest,
  callbacks: ModelRequestOptions,
  secrets: SentSecrets,
): Promise<ModelResponse> {
  const { signal, onActivity, onWarning = ignore, onSent, onDelta, onToolCallDelta, onHostedCall } = callbacks
  const { modelId } = model
  const fold = createPartFold(model.provider, request.stream && onToolCallDelta !== undefined)

  function takePart(part: unknown): void {
    const object = asObject(part)
    const type = asText(object?.type)
    if (type === 'error') throw object?.error
    if (type === 'stream-start') return emitWarnings(object?.warnings, onWarning)
    const {
      text,
      reasoning,
      calls = [],
      hosted = [],
    } = type === 'finish' ? fold.finish(part) : fold.push(part)
    if (text !== '' || reasoning !== '') onDelta(text, reasoning)
    for (const call of calls) onToolCallDelta?.(call)
    for (const call of hosted) onHostedCall?.(call)
  }

  async function readStream(call: CallOptions): Promise<void> {
    const answer: unknown = await model.doStream({ ...call, includeRawChunks: true } as never)
    onActivity('keep_alive')
    const reader = getStream(answer, modelId).getReader()
    const cancel = () => void reader.cancel(signal.reason).catch(ignore)
    signal.addEventListener('abort', cancel, { once: true })
    try {
      for (;;) {
        const { done, value } = await reader.read()
        // A cancelled reader ends like a finished one, so the signal is checked first.
        signal.throwIfAborted()
        if (done) return
        const before = fold.progress
        takePart(value)
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

  async function readWhole(call: CallOptions): Promise<void> {
    const result = await model.doGenerate(call as never)
    onActivity()
    emitWarnings(asObject(result)?.warnings, onWarning)
    for (const part of asList(asObject(result)?.content))
      for (const hosted of fold.push(part).hosted ?? []) onHostedCall?.(hosted)
    fold.finish(result)
  }

  try {
    const urls: SupportedUrls = (await model.supportedUrls) ?? {}
    const fitting = fitTools(request, findSchemaFamily(model.provider, modelId), onWarning)
    const call = { ...toCall(fitting, urls, onWarning), abortSignal: signal }
    // The package still has to create the request.
    if (onSent) setTimeout(onSent, 0)
    await (request.stream ? readStream(call) : readWhole(call))
    return fold.getResponse()
  } catch (error) {
    signal.throwIfAborted()
    const { text, usage } = fold.getResponse()
    const failed = toModelError(error, modelId, { partialText: text, usage })
    if (failed.code === 'connection' && fold.finishBroken()) return fold.getResponse()
    const hidden = secrets.hideInFailure(failed.failure)
    throw hidden === null ? failed : new ModelError(hidden)
  }
}

function getStream(answer: unknown, modelId: string): ReadableStream<unknown> {
  const { stream } = (answer ?? {}) as { stream?: ReadableStream<unknown> }
  if (typeof stream?.getReader === 'function') return stream
  throw new ModelError({
    kind: 'fatal',
    code: 'invalid_response',
    message: `The package for ${modelId} returned no stream from doStream. Update it, or disable streaming: stream: false.`,
  })
}

/** Reads the stream to its end, because a wrapper around the model may wait for the end. Stops after a timeout. */
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

function emitWarnings(warnings: unknown, onWarning: WarnFunction): void {
  for (const warning of asList(warnings)) {
    const { feature, setting, tool, message, details, ...rest } = asObject(warning) ?? {}
    const subject = asText(feature) || asText(setting) || asText(asObject(tool)?.name)
    const reason = asText(message) || asText(details)
    const type = asText(rest['type'])
    const code = type.startsWith('unsupported') ? 'unsupported_setting' : 'provider_warning'
    const isIgnored = code === 'unsupported_setting' && subject !== ''
    const text = isIgnored ? `${subject} is ignored by the provider` : subject
    onWarning(code, [text, reason].filter((words) => words !== '').join(': ') || type)
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

/** Anthropic's package drops the tools if calls are forbidden, and Gemini's own tools cannot be forbidden. */
function canForbidCalls(name: string, { providerTools }: LanguageModelOptions): boolean {
  return ['openai', 'azure', 'xai'].includes(name) || (name === 'google' && providerTools === undefined)
}

function ignore(): void {}

type WarnFunction = (code: string, message: string) => void

function createCallBuilder(model: AiSdkModel, options: LanguageModelOptions) {
  const { specificationVersion: version, provider: origin, modelId } = model
  const key = getOptionsKey(origin)
  const translated = new WeakMap<Message, Exclude<PromptMessage, { role: 'system' }>>()
  const functions = new WeakMap<ToolSpec, CallTool>()
  const hosted = Object.entries(options.providerTools ?? {}).map(([name, tool]) =>
    toHostedTool(name, tool, version),
  )
  const target: Omit<PromptTarget, 'urls'> = {
    version,
    origin,
    modelId,
    provider: key,
    callId: createProviderCallIds(origin, modelId),
    cache: findCacheMark(origin, options.cache ?? true),
  }

  function toFunction(tool: ToolSpec): CallTool {
    return getOrCreate(functions, tool, () => {
      const { name, description, parameters } = toWellFormed(tool)
      return { type: 'function', name, description, inputSchema: parameters }
    })
  }

  return (request: ModelRequest, urls: SupportedUrls, warn: WarnFunction): CallOptions => {
    refuseExtraBody(request.extraBody)
    const { toolChoice, responseFormat, sampling } = request
    const tools = [...request.tools.map(toFunction), ...hosted]
    const given = options.providerOptions ?? {}
    const { effort: reasoning, providerOptions } = toReasoning(request, version, key, given, warn)
    const { maxTokens, temperature, topP, presencePenalty, frequencyPenalty, seed, stop } = sampling
    const call: CallOptions = {
      prompt: toPrompt(request, { ...target, urls }, translated),
      ...(tools.length > 0 && { tools }),
      ...(tools.length > 0 && toolChoice !== undefined && { toolChoice: toToolChoice(toolChoice) }),
      ...(responseFormat && {
        responseFormat: { type: 'json', schema: responseFormat.schema, name: responseFormat.name },
      }),
      ...omitUndefined({
        maxOutputTokens: maxTokens,
        temperature,
        topP,
        presencePenalty,
        frequencyPenalty,
        seed,
        stopSequences: typeof stop === 'string' ? [stop] : stop,
        reasoning,
        headers: options.headers,
      }),
      ...(Object.keys(providerOptions).length > 0 && { providerOptions }),
    }
    return origin.includes('anthropic') ? disableThinkingWithoutThoughts(call) : call
  }
}

function toToolChoice(choice: ToolChoice): NonNullable<CallOptions['toolChoice']> {
  return typeof choice === 'string' ? { type: choice } : { type: 'tool', toolName: choice.name }
}

/** The key of a provider's options: `openai` for `openai.responses`. */
const getOptionsKey = (origin: string): string => origin.split('.')[0] ?? origin

function toHostedTool(name: string, tool: object, version: AiSdkModel['specificationVersion']): CallTool {
  const [id, args] = [asText(Reflect.get(tool, 'id')), asObject(Reflect.get(tool, 'args')) ?? {}]
  return { type: version === 'v2' ? 'provider-defined' : 'provider', id, name, args }
}

/** Mistral requires nine letters and digits; Anthropic and Bedrock require letters, digits, _ and -. */
function createProviderCallIds(origin: string, modelId: string): (id: string) => string {
  const isMistral =
    origin.startsWith('mistral') || /(mis|mix|minis|codes|devs|magis|pix|vox)tral/i.test(modelId)
  const shortened = createCallIdMapper(modelId, isMistral)
  if (!/anthropic|bedrock/.test(origin)) return shortened
  return (id) => (/^[\w-]{1,64}$/.test(id) ? id : `call_${sha256(JSON.stringify(id)).slice(0, 32)}`)
}

/** Providers whose v2 and v3 packages have an option `reasoningEffort`. */
const effortOption = new Set(['openai', 'azure', 'xai', 'groq'])

/** A field in v4, and an option of some providers in earlier versions. Explicit options take precedence. */
function toReasoning(
  { sampling: { reasoningEffort: effort } }: ModelRequest,
  version: AiSdkModel['specificationVersion'],
  key: string,
  options: ProviderData,
  warn: WarnFunction,
): { effort?: string; providerOptions: ProviderData } {
  if (effort === undefined) return { providerOptions: options }
  if (version === 'v4') return { effort, providerOptions: options }
  if (effortOption.has(key))
    return { providerOptions: { ...options, [key]: { reasoningEffort: effort, ...options[key] } } }
  warn(
    'unsupported_setting',
    `sampling.reasoningEffort is ignored, because the ${key} package has its own option. Set it in providerOptions of languageModel.`,
  )
  return { providerOptions: options }
}

function refuseExtraBody(extraBody: JsonObject): void {
  const [key] = Object.keys(extraBody)
  if (key === undefined) return
  throw new ModelError({
    kind: 'fatal',
    code: 'unsupported_option',
    message: `extraBody.${key} is not supported, because AI SDK models create their own requests. Use providerOptions of languageModel instead.`,
  })
}

/**
 * While calls are being answered, Anthropic rejects a request without the reasoning that led to the calls. If another
 * model made the calls, or a shield or an edit removed the reasoning, thinking is disabled until the batch is answered.
 */
function disableThinkingWithoutThoughts(call: CallOptions): CallOptions {
  const { anthropic } = call.providerOptions ?? {}
  const isOn = !['', 'disabled'].includes(asText(asObject(anthropic?.['thinking'])?.type))
  const mayThink = isOn || (call.reasoning !== undefined && call.reasoning !== 'none')
  if (!mayThink || !lacksThoughts(call.prompt)) return call
  const providerOptions: ProviderData = {
    ...call.providerOptions,
    anthropic: { ...anthropic, thinking: { type: 'disabled' } },
  }
  return { ...call, providerOptions, ...(call.reasoning !== undefined && { reasoning: 'none' }) }
}

function lacksThoughts(prompt: readonly PromptMessage[]): boolean {
  const last = prompt.findLastIndex(({ role }) => role === 'assistant')
  const answer = prompt[last]
  if (answer?.role !== 'assistant' || prompt[last + 1]?.role !== 'tool') return false
  const first = answer.content.find(({ providerOptions }) => !isCompaction(providerOptions))
  return first?.type !== 'reasoning'
}
