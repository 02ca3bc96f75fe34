import type { JsonObject } from '../../machines/agent/json.js'
import type { Message } from '../../machines/agent/messages.js'
import { sha256 } from '../../guards/lib/sha256.js'
import { asObject, asText } from '../core/base/values.js'
import { createCallIdMapper } from '../core/models/openai/wire-messages.js'
import { ModelError, type ModelRequest, type ToolSpec } from '../core/models/provider.js'
import { toWellFormed } from '../core/models/plain-json.js'
import { findCacheMark } from './cache-marks.js'
import type { SupportedUrls } from './file-parts.js'
import type { AiSdkModel } from './ai-sdk-model.js'
import type { LanguageModelOptions } from './language-model-options.js'
import { toPrompt, type PromptTarget } from './prompt.js'
import type { CallOptions, CallTool, PromptMessage, ProviderData } from './spec.js'
import { isCompaction } from './provider-echo.js'

export type WarnFunction = (code: string, message: string) => void

/** Turns requests into what a model is called with, but for the signal. */
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

  function functionOf(tool: ToolSpec): CallTool {
    const known = functions.get(tool)
    if (known !== undefined) return known
    const { name, description, parameters } = toWellFormed(tool)
    const made: CallTool = { type: 'function', name, description, inputSchema: parameters }
    functions.set(tool, made)
    return made
  }

  return (request: ModelRequest, urls: SupportedUrls, warn: WarnFunction): CallOptions => {
    refuseExtraBody(request.extraBody)
    const { toolChoice, responseFormat, sampling } = request
    const tools = [...request.tools.map(functionOf), ...hosted]
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

/** The name under which a provider reads its options: `openai` of `openai.responses`. */
export function getOptionsKey(origin: string): string {
  const [first = origin] = origin.split('.')
  return first
}

/** A tool of the package as its specification calls it; packages make them for `ai`, which names them by their key. */
function toHostedTool(name: string, tool: object, version: AiSdkModel['specificationVersion']): CallTool {
  const { id, args } = { id: Reflect.get(tool, 'id') as unknown, args: asObject(Reflect.get(tool, 'args')) }
  return { type: version === 'v2' ? 'provider-defined' : 'provider', id: asText(id), name, args: args ?? {} }
}

/** Mistral's have nine letters and digits; Anthropic's and Bedrock's are letters, digits, _ and -. */
function createProviderCallIds(origin: string, modelId: string): (id: string) => string {
  const isMistral =
    origin.startsWith('mistral') || /(mis|mix|minis|codes|devs|magis|pix|vox)tral/i.test(modelId)
  const shortened = createCallIdMapper(modelId, isMistral)
  if (!/anthropic|bedrock/.test(origin)) return shortened
  return (id) => (/^[\w-]{1,64}$/.test(id) ? id : `call_${sha256(JSON.stringify(id)).slice(0, 32)}`)
}

/** Providers whose packages of v2 and v3 take the effort as an option of this name. */
const effortOption = new Set(['openai', 'azure', 'xai', 'groq'])

/** How long it thinks: a field of v4, before it an option of some providers. What the options say themselves comes first. */
function toReasoning(
  { sampling: { reasoningEffort: effort } }: ModelRequest,
  version: AiSdkModel['specificationVersion'],
  key: string,
  given: ProviderData,
  warn: WarnFunction,
): { effort?: string; providerOptions: ProviderData } {
  if (effort === undefined) return { providerOptions: given }
  if (version === 'v4') return { effort, providerOptions: given }
  if (effortOption.has(key))
    return { providerOptions: { ...given, [key]: { reasoningEffort: effort, ...given[key] } } }
  warn(
    'unsupported_setting',
    `sampling.reasoningEffort is not heeded: the package of ${key} has an option of its own for it. Set it in providerOptions of languageModel.`,
  )
  return { providerOptions: given }
}

function refuseExtraBody(extraBody: JsonObject): void {
  const [key] = Object.keys(extraBody)
  if (key === undefined) return
  throw new ModelError({
    kind: 'fatal',
    code: 'unsupported_option',
    message: `extraBody.${key} cannot be sent: a model of the AI SDK writes its requests itself. Give what the provider takes as providerOptions of languageModel.`,
  })
}

/**
 * Anthropic thinks on only where it thought before: while calls are answered, it wants the thoughts back that led to them. Where
 * another model has made the calls, or a shield or an edit has taken the thoughts away, there are none, and the whole
 * request would be refused; so it is asked not to think until the batch is answered.
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

/** Whether the calls that are being answered came without thoughts. */
function lacksThoughts(prompt: readonly PromptMessage[]): boolean {
  const last = prompt.findLastIndex(({ role }) => role === 'assistant')
  const answer = prompt[last]
  if (answer?.role !== 'assistant' || prompt[last + 1]?.role !== 'tool') return false
  const first = answer.content.find(({ providerOptions }) => !isCompaction(providerOptions))
  return first?.type !== 'reasoning'
}
