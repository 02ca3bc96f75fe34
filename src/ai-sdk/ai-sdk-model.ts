import { describeError, ConfigError } from '../core/base/errors.js'

/** The versions of the AI SDK's specification of language models that are spoken: those of `ai` 5, 6 and 7. */
export type SpecificationVersion = 'v2' | 'v3' | 'v4'

const versions: readonly SpecificationVersion[] = ['v2', 'v3', 'v4']

/**
 * A language model of the AI SDK, as every provider package makes one: `anthropic('claude-…')`, `google('gemini-…')`.
 */
export interface AiSdkModel {
  /** Which specification it was written for. */
  readonly specificationVersion: SpecificationVersion
  /** The provider and its API: `anthropic.messages`, `google.generative-ai`, … */
  readonly provider: string
  /** The model, as the provider names it. */
  readonly modelId: string
  /** By media type, the addresses that the provider fetches by itself. */
  readonly supportedUrls?: PromiseLike<Record<string, RegExp[]>> | Record<string, RegExp[]>
  /** One answer, whole. Its types differ from version to version. */
  doGenerate(options: never): PromiseLike<unknown>
  /** One answer in pieces. */
  doStream(options: never): PromiseLike<unknown>
}

/** @throws ConfigError for whatever is no language model of a known specification, with what to do about it. */
export function checkModel(model: unknown): asserts model is AiSdkModel {
  if (typeof model === 'string') {
    throw modelError(
      'invalid_model',
      `'${model}' is a name. Pass the model that a provider package makes: languageModel(anthropic('claude-…')).`,
    )
  }
  if (typeof model === 'function') {
    throw modelError(
      'invalid_model',
      "this is a provider, not yet a model. Call it with a model's name: languageModel(anthropic('claude-…')).",
    )
  }
  if (typeof model !== 'object' || model === null)
    throw modelError('invalid_model', `it must be a language model of the AI SDK, but is ${String(model)}.`)
  const given: { [Key in keyof AiSdkModel]?: unknown } & Record<string, unknown> = readModel(model)
  if (given['then'] !== undefined)
    throw modelError('invalid_model', 'this is a promise of a model: await it first.')
  const { specificationVersion: version, provider, modelId, doGenerate, doStream } = given
  const isKnown = versions.some((one) => one === version)
  if (isKnown && typeof doGenerate === 'function' && typeof doStream === 'function') {
    if (typeof provider === 'string' && typeof modelId === 'string') return
    throw modelError('invalid_model', 'it has no provider and modelId, which every model of the AI SDK has.')
  }
  if (version === 'v1') {
    throw modelError(
      'unsupported_model_version',
      `${describeModel(given)} was written for 'v1', the specification of AI SDK 4. Update its package: npm install @ai-sdk/NAME@latest.`,
    )
  }
  if (version !== undefined && !isKnown) {
    throw modelError(
      'unsupported_model_version',
      `${describeModel(given)} was written for ${quoteValue(version)}, and this version of Statewright knows ${versions.join(', ')}. Update statewright, or install a version of the provider's package that is written for one of these.`,
    )
  }
  if (isKnown) {
    throw modelError(
      'invalid_model',
      `${describeModel(given)} is of another kind (embeddings, images, speech): pass a language model, such as anthropic('claude-…').`,
    )
  }
  throw modelError(
    'invalid_model',
    "this object is no model of the AI SDK: it has no specificationVersion. Pass what a provider package makes: languageModel(anthropic('claude-…')).",
  )
}

/** @throws ConfigError for an object that cannot even be looked at */
function readModel(model: object): Record<string, unknown> {
  try {
    return pickMembers(model)
  } catch (cause) {
    throw modelError(
      'invalid_model',
      `this object cannot be read (${describeError(cause)}). Pass the model as its provider package makes it: languageModel(anthropic('claude-…')).`,
      cause,
    )
  }
}

/** What is asked about, also where a class keeps it on its prototype. */
function pickMembers(model: object): Record<string, unknown> {
  const keys = ['specificationVersion', 'provider', 'modelId', 'doGenerate', 'doStream', 'then']
  return Object.fromEntries(keys.map((key) => [key, Reflect.get(model, key)]))
}

function describeModel({ provider, modelId }: { provider?: unknown; modelId?: unknown }): string {
  return typeof modelId === 'string' ? `the model ${modelId} (${quoteValue(provider)})` : 'this model'
}

function quoteValue(value: unknown): string {
  return typeof value === 'string' ? `'${value}'` : typeof value
}

function modelError(code: string, what: string, cause?: unknown): ConfigError {
  return new ConfigError(code, `languageModel: ${what}`, 'model', cause === undefined ? undefined : { cause })
}
