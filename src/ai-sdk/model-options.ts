import { isRecord } from '../../guards/lib/stored.js'
import type { JsonObject } from '../../machines/agent/json.js'
import { ConfigError, describeError } from '../core/base/errors.js'
import { readProperty } from '../core/base/json.js'
import type { MediaKind } from '../../machines/agent/refusals.js'
import { checkOptions, choiceRule, type OptionRules } from '../core/config/check-options.js'
import { isMediaList } from '../core/models/media.js'
import {
  isLimiter,
  limiterPhrase,
  type RequestLimiter,
  type StructuredOutputSupport,
} from '../core/models/provider.js'

/** The supported versions of the AI SDK's language model specification, used by `ai` 5, 6 and 7. */
export type SpecificationVersion = 'v2' | 'v3' | 'v4'

const versions: readonly SpecificationVersion[] = ['v2', 'v3', 'v4']

/** A language model from the AI SDK, created by a provider package: `anthropic('claude-…')`, `google('gemini-…')`. */
export interface AiSdkModel {
  /** The specification that the model implements. */
  readonly specificationVersion: SpecificationVersion
  /** The provider and its API: `anthropic.messages`, `google.generative-ai`, … */
  readonly provider: string
  /** The provider's name for the model. */
  readonly modelId: string
  /** The addresses that the provider can fetch, by media type. */
  readonly supportedUrls?: PromiseLike<Record<string, RegExp[]>> | Record<string, RegExp[]>
  /** Returns a complete answer. The types depend on the version. */
  doGenerate(options: never): PromiseLike<unknown>
  /** Streams an answer. */
  doStream(options: never): PromiseLike<unknown>
}

/** @throws ConfigError `invalid_model`, `unsupported_model_version` */
export function checkModel(model: unknown): asserts model is AiSdkModel {
  const fail = (problem: string): ConfigError => modelError('invalid_model', problem)
  if (typeof model === 'string')
    throw fail(
      `'${model}' is a name. Pass a model from a provider package: languageModel(anthropic('claude-…')).`,
    )
  if (typeof model === 'function')
    throw fail("this is a provider. Call it with a model name: languageModel(anthropic('claude-…')).")
  if (typeof model !== 'object' || model === null)
    throw fail(`it must be an AI SDK language model, but is ${String(model)}.`)
  const members: { [Key in keyof AiSdkModel]?: unknown } & Record<string, unknown> = readModel(model)
  if (members['then'] !== undefined) throw fail('this is a promise. Await it first.')
  const { specificationVersion: version, provider, modelId, doGenerate, doStream } = members
  if (version === undefined)
    throw fail(
      "this object has no specificationVersion, so it is not an AI SDK model. Pass a model from a provider package: languageModel(anthropic('claude-…')).",
    )
  if (!versions.some((known) => known === version)) {
    const found =
      version === 'v1'
        ? "'v1', the specification of AI SDK 4. Update its package: npm install @ai-sdk/NAME@latest."
        : `${quoteValue(version)}, but this version of Statewright supports ${versions.join(', ')}. Update statewright, or install a version of the provider's package that implements one of these.`
    throw modelError('unsupported_model_version', `${describeModel(members)} implements ${found}`)
  }
  if (typeof doGenerate !== 'function' || typeof doStream !== 'function')
    throw fail(
      `${describeModel(members)} is not a language model, but one for embeddings, images or speech. Pass a language model, such as anthropic('claude-…').`,
    )
  if (typeof provider !== 'string' || typeof modelId !== 'string')
    throw fail('it has no provider or modelId.')
}

function readModel(model: object): Record<string, unknown> {
  try {
    // Reads class members on the prototype too.
    const keys = ['specificationVersion', 'provider', 'modelId', 'doGenerate', 'doStream', 'then']
    return Object.fromEntries(keys.map((key) => [key, Reflect.get(model, key)]))
  } catch (cause) {
    throw modelError(
      'invalid_model',
      `this object cannot be read (${describeError(cause)}). Pass a model from a provider package: languageModel(anthropic('claude-…')).`,
      cause,
    )
  }
}

function describeModel({ provider, modelId }: { provider?: unknown; modelId?: unknown }): string {
  return typeof modelId === 'string' ? `the model ${modelId} (${quoteValue(provider)})` : 'this model'
}

function quoteValue(value: unknown): string {
  return typeof value === 'string' ? `'${value}'` : typeof value
}

function modelError(code: string, problem: string, cause?: unknown): ConfigError {
  const options = cause === undefined ? undefined : { cause }
  return new ConfigError(code, `languageModel: ${problem}`, 'model', options)
}

/**
 * Options for all requests to an AI SDK model.
 *
 * @example
 * import { anthropic } from '@ai-sdk/anthropic'
 *
 * languageModel(anthropic('claude-sonnet-4-5'), {
 *   providerOptions: { anthropic: { thinking: { type: 'enabled', budgetTokens: 4_000 } } },
 *   cache: '1h',
 * })
 */
export interface LanguageModelOptions {
  /** Options for specific providers, by provider name. See the documentation of the provider package. */
  providerOptions?: Record<string, JsonObject> | undefined
  /**
   * Tools that the provider executes, by name: `{ web_search: anthropic.tools.webSearch_20250305() }`. Their calls and results
   * are reported as `hosted` steps and stay part of the answer. Guards and approvals do not apply to them.
   */
  providerTools?: Record<string, object> | undefined
  /** Headers to send with every request. */
  headers?: Record<string, string> | undefined
  /**
   * Whether to mark the stable part of each request for the provider's cache if the provider needs marks (Anthropic).
   * `'1h'` keeps the cached part for an hour instead of five minutes. Defaults to true.
   */
  cache?: boolean | '5m' | '1h' | undefined
  /**
   * The media that the model supports in addition to text. Messages with other media are refused before they are sent.
   * `[]` allows only text. By default nothing is checked, and the package or the provider reports the error.
   */
  media?: readonly MediaKind[] | undefined
  /** The name of the provider, for display and prices. Defaults to a name derived from the model. */
  provider?: string | undefined
  /** A rate limiter created with `createLimiter` from `statewright/fleet`. None by default. */
  limiter?: RequestLimiter | undefined
  /**
   * Whether the model supports output schemas: together with tools (`beside_tools`), or only `alone`. `'none'` requests the
   * answer through a tool. The default depends on the provider.
   */
  structuredOutput?: StructuredOutputSupport | 'none' | undefined
}

const recordRule = (fits: (item: unknown) => boolean, phrase: string) => ({
  is: (value: unknown) => isRecord(value) && Object.values(value).every(fits),
  phrase,
})

const optionRules: OptionRules<LanguageModelOptions> = {
  providerOptions: recordRule(isRecord, 'an object with options by provider name: { anthropic: { … } }'),
  providerTools: recordRule(
    (tool) => typeof readProperty(tool, 'id') === 'string',
    "an object with tools from the provider's package by name: { web_search: anthropic.tools.webSearch_20250305() }",
  ),
  headers: recordRule((header) => typeof header === 'string', 'an object with a string for each header'),
  cache: {
    is: (value) => [true, false, '5m', '1h'].includes(value as never),
    phrase: "true, false, '5m' or '1h'",
  },
  media: { is: isMediaList, phrase: "a list of zero or more of 'image', 'audio' and 'file'" },
  provider: {
    is: (value) => typeof value === 'string' && value.trim() !== '',
    phrase: "a provider name, such as 'anthropic'",
  },
  limiter: { is: isLimiter, phrase: limiterPhrase },
  structuredOutput: choiceRule('beside_tools', 'alone', 'none'),
}

/** @throws ConfigError `invalid_option`, UsageError `invalid_argument` */
export function checkLanguageModelOptions(options: LanguageModelOptions): void {
  checkOptions(
    'languageModel(model, options)',
    options,
    optionRules,
    (message, key) => new ConfigError('invalid_option', message, key),
  )
}
