import type { JsonObject } from '../../machines/agent/json.js'
import type { Message } from '../../machines/agent/messages.js'
import { sha256 } from '../../guards/lib/sha256.js'
import { asObject, asText } from '../core/base/values.js'
import { createCallIdMapper } from '../core/models/openai/wire-messages.js'
import { ModelError, type ModelRequest, type ToolSpec } from '../core/models/provider.js'
import { toWellFormed } from '../core/models/plain-json.js'
import type { SupportedUrls } from './file-parts.js'
import type { AiSdkModel, LanguageModelOptions } from './model-options.js'
import { findCacheMark, type PromptTarget, toPrompt } from './prompt.js'
import type { CallOptions, CallTool, PromptMessage, ProviderData } from './spec.js'
import { isCompaction } from './provider-echo.js'

type WarnFunction = (code: string, message: string) => void

/** Creates a function that converts requests to call options, except for the signal. */
export function createCallBuilder(model: AiSdkModel, options: LanguageModelOptions) {
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
    const known = functions.get(tool)
    if (known !== undefined) return known
    const { name, description, parameters } = toWellFormed(tool)
    const created: CallTool = { type: 'function', name, description, inputSchema: parameters }
    functions.set(tool, created)
    return created
  }

  return (request: ModelRequest, urls: SupportedUrls, warn: WarnFunction): CallOptions => {
    refuseExtraBody(request.extraBody)
    const { toolChoice, responseFormat, sampling } = request
    const tools = [...request.tools.map(toFunction), ...hosted]
    const { effort, providerOptions } = toReasoning(
      request,
      version,
      key,
      options.providerOptions ?? {},
      warn,
    )
    const { maxTokens, temperature, topP, presencePenalty, frequencyPenalty, seed, stop } = sampling
    const call: CallOptions = {
      prompt: toPrompt(request, { ...target, urls }, translated),
      ...(tools.length > 0 && { tools }),
      ...(tools.length > 0 && toolChoice !== undefined && { toolChoice: toToolChoice(toolChoice) }),
      ...(responseFormat && {
        responseFormat: { type: 'json', schema: responseFormat.schema, name: responseFormat.name },
      }),
      ...(maxTokens !== undefined && { maxOutputTokens: maxTokens }),
      ...(temperature !== undefined && { temperature }),
      ...(topP !== undefined && { topP }),
      ...(presencePenalty !== undefined && { presencePenalty }),
      ...(frequencyPenalty !== undefined && { frequencyPenalty }),
      ...(seed !== undefined && { seed }),
      ...(stop !== undefined && { stopSequences: typeof stop === 'string' ? [stop] : stop }),
      ...(effort !== undefined && { reasoning: effort }),
      ...(options.headers !== undefined && { headers: options.headers }),
      ...(Object.keys(providerOptions).length > 0 && { providerOptions }),
    }
    return origin.includes('anthropic') ? disableThinkingWithoutThoughts(call) : call
  }
}

function toToolChoice(
  choice: NonNullable<ModelRequest['toolChoice']>,
): NonNullable<CallOptions['toolChoice']> {
  return typeof choice === 'string' ? { type: choice } : { type: 'tool', toolName: choice.name }
}

/** The key of a provider's options: `openai` for `openai.responses`. */
export function getOptionsKey(origin: string): string {
  const [first = origin] = origin.split('.')
  return first
}

/** Converts a provider tool, which packages create for `ai`, to the format of the specification. */
function toHostedTool(name: string, tool: object, version: AiSdkModel['specificationVersion']): CallTool {
  const { id, args } = { id: Reflect.get(tool, 'id') as unknown, args: asObject(Reflect.get(tool, 'args')) }
  return { type: version === 'v2' ? 'provider-defined' : 'provider', id: asText(id), name, args: args ?? {} }
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

/** The reasoning effort: a field in v4, and an option of some providers before. Explicit options take precedence. */
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
    `sampling.reasoningEffort is ignored, because the package of ${key} has its own option. Set it in providerOptions of languageModel.`,
  )
  return { providerOptions: options }
}

function refuseExtraBody(extraBody: JsonObject): void {
  const [key] = Object.keys(extraBody)
  if (key === undefined) return
  throw new ModelError({
    kind: 'fatal',
    code: 'unsupported_option',
    message: `extraBody.${key} is not supported, because a model of the AI SDK creates its own requests. Use providerOptions of languageModel instead.`,
  })
}

/**
 * While calls are answered, Anthropic requires the reasoning that led to them, and otherwise rejects the request. If another
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

/** Whether the calls that are being answered lack reasoning. */
function lacksThoughts(prompt: readonly PromptMessage[]): boolean {
  const last = prompt.findLastIndex(({ role }) => role === 'assistant')
  const answer = prompt[last]
  if (answer?.role !== 'assistant' || prompt[last + 1]?.role !== 'tool') return false
  const first = answer.content.find(({ providerOptions }) => !isCompaction(providerOptions))
  return first?.type !== 'reasoning'
}
