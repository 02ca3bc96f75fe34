import { isRecord } from '../../guards/lib/stored.js'
import type { JsonObject } from '../../machines/agent/json.js'
import { ConfigError } from '../core/base/errors.js'
import type { MediaKind } from '../../machines/agent/refusals.js'
import { isMediaList } from '../core/models/media.js'
import {
  isLimiter,
  limiterPhrase,
  type RequestLimiter,
  type StructuredOutputSupport,
} from '../core/models/provider.js'

/**
 * What goes with every request to a model of the AI SDK.
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
  /** Options of the provider's own, by its name, as its package documents them. */
  providerOptions?: Record<string, JsonObject> | undefined
  /**
   * Tools that the provider carries out itself, by name: `{ web_search: anthropic.tools.webSearch_20250305() }`. Their calls
   * and results are told as `hosted` steps, stay with the answer and go back with it; the agent's own tools, guards and
   * approvals see none of them.
   */
  providerTools?: Record<string, object> | undefined
  /** Sent with every request. */
  headers?: Record<string, string> | undefined
  /**
   * Whether the stable part of each request is marked for the provider's cache, where it wants marks (Anthropic); `'1h'`
   * keeps it an hour instead of five minutes. Default true. Other providers need none.
   */
  cache?: boolean | '5m' | '1h' | undefined
  /**
   * What the model takes besides text: a message with anything else is refused before it is sent. `[]` is a model for text
   * alone. Default: unknown, and what its package or its provider says is the error.
   */
  media?: readonly MediaKind[] | undefined
  /** The provider, for people and for prices. Default: known from the model. */
  provider?: string | undefined
  /** Lets its requests go as fast as the provider allows: what `createLimiter` of `statewright/fleet` returns. Default: at once. */
  limiter?: RequestLimiter | undefined
  /**
   * Whether an output schema can be left to the model, also `beside_tools` or only `alone`; `'none'` asks for the answer by
   * a tool. Default: what is known of the provider.
   */
  structuredOutput?: StructuredOutputSupport | 'none' | undefined
}

/** @throws ConfigError for options that no request could be made with. */
export function checkLanguageModelOptions(options: LanguageModelOptions): void {
  const { providerOptions, providerTools, headers, cache, media, provider, structuredOutput } = options
  if (!isRecordOf(providerOptions, isRecord))
    throw optionError('providerOptions', "must hold objects by a provider's name: { anthropic: { … } }.")
  if (!isRecordOf(providerTools, hasId))
    throw optionError(
      'providerTools',
      "must hold tools of the provider's package by name: { web_search: anthropic.tools.webSearch_20250305() }.",
    )
  if (!isRecordOf(headers, (value) => typeof value === 'string'))
    throw optionError('headers', 'must hold texts by the name of the header.')
  if (!isLimiter(options.limiter)) throw optionError('limiter', limiterPhrase)
  if (![undefined, true, false, '5m', '1h'].includes(cache))
    throw optionError('cache', "must be true, false, '5m' or '1h'.")
  if (!isMediaList(media)) throw optionError('media', "must be a list of 'image', 'audio' and 'file'.")
  if (provider !== undefined && (typeof provider !== 'string' || provider.trim() === ''))
    throw optionError('provider', "must be a provider's name, such as 'anthropic'.")
  if (![undefined, 'beside_tools', 'alone', 'none'].includes(structuredOutput))
    throw optionError('structuredOutput', "must be 'beside_tools', 'alone' or 'none'.")
}

function isRecordOf(value: unknown, fits: (item: unknown) => boolean): boolean {
  return value === undefined || (isRecord(value) && Object.values(value).every(fits))
}

function hasId(value: unknown): boolean {
  return (
    (typeof value === 'object' || typeof value === 'function') &&
    typeof Reflect.get(value ?? {}, 'id') === 'string'
  )
}

function optionError(option: string, what: string): ConfigError {
  return new ConfigError('invalid_option', `languageModel: ${option} ${what}`, option)
}
