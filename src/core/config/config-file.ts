import type { JsonObject } from '../../../machines/agent/json.js'
import { type ReasoningForm, reasoningForms } from '../models/openai/openai-options.js'
import {
  union,
  list,
  map,
  optional,
  predicate,
  refine,
  anyText,
  choice,
  count,
  flag,
  record,
  nonEmptyText,
  section,
} from './kind.js'
import type { AgentConfigInput } from '../../../machines/agent/config.js'
import { checkInput, invalidInputError } from './check-input.js'
import { defaultConfig } from './defaults.js'
import { deepFreeze } from '../base/values.js'
import { findJsonProblem } from '../base/json.js'
import { mergeConfig } from './resolve-config.js'
import { type PriceTable, priceTable } from './price-table.js'
import { type RequestOptions, requestSections } from './request-options.js'
import { agentSections } from './agent-sections.js'

/** The model of a configuration file: the options of `openaiChat` or `openaiResponses`, as far as they are plain data and no secret. */
export interface ModelSection {
  /** The model, as the provider names it. With Azure, the deployment. */
  model: string
  /** The API that the model is spoken to over: Chat Completions, or Responses. Default: `chat`. */
  api?: ModelApi | undefined
  /** The provider, for people and for prices. Default: known from the base URL. */
  provider?: string | undefined
  /** Where the API is, up to and including `/v1`. */
  baseURL?: string | undefined
  /** The environment variable that holds the key. Left out: OPENAI_API_KEY, unless `baseURL` leads elsewhere. */
  apiKeyEnv?: string | undefined
  /** OpenAI's organization that requests are billed to. */
  organization?: string | undefined
  /** OpenAI's project that requests belong to. */
  project?: string | undefined
  /** Sent with every request. */
  headers?: Record<string, string> | undefined
  /** Added to the URL of every request (Azure's `api-version`, for example). */
  query?: Record<string, string> | undefined
  /** Milliseconds until the headers of an answer have to be there. */
  timeoutMs?: number | undefined
  /** The field that carries `sampling.maxTokens`. Default: `max_completion_tokens` at OpenAI and Azure, else `max_tokens`. */
  maxTokensField?: 'max_tokens' | 'max_completion_tokens' | undefined
  /** Whether, or as what, earlier reasoning is sent back. */
  echoReasoning?: boolean | ReasoningForm | undefined
  /** With `responses`: tools that the provider itself runs. */
  hostedTools?: JsonObject[] | undefined
  /** With `responses`: how long the model sums up what it thinks. */
  reasoningSummary?: 'auto' | 'concise' | 'detailed' | undefined
  /** With `responses`: whether reasoning is asked for in its encrypted form. */
  encryptedReasoning?: boolean | undefined
}

export type ModelApi = (typeof modelApis)[number]

export const modelApis = ['chat', 'responses'] as const

/** Keys that one of the APIs alone has. */
export const apiOnlyKeys: Readonly<Record<ModelApi, readonly (keyof ModelSection)[]>> = {
  chat: ['maxTokensField', 'echoReasoning'],
  responses: ['hostedTools', 'reasoningSummary', 'encryptedReasoning'],
}

const noSecretHint = 'put the key into an environment variable and name that in model.apiKeyEnv'

/** Parameters of a request by name, none of which may be a secret. */
const parameterMap = (what: string) =>
  refine(
    map(nonEmptyText(), 'an object of texts'),
    (given) => !Object.keys(given).some(isSecretName),
    `${what} without secrets: ${noSecretHint}`,
  )

const urlPhrase = 'an http(s) URL without user, password, query and fragment'
const variablePhrase =
  'the name of an environment variable in capitals, such as OPENAI_API_KEY; the key itself stays out of files'

const echoPhrase = "true, false, 'reasoning_content', 'reasoning' or 'thinking'"

const toolsPhrase = "a list of tools with a type, such as [{ type: 'web_search' }]"

export const modelSection = record({
  model: nonEmptyText("the provider's name of a model"),
  api: optional(choice(...modelApis)),
  provider: optional(nonEmptyText()),
  baseURL: optional(refine(anyText(urlPhrase), isPlainUrl, urlPhrase)),
  apiKeyEnv: optional(
    refine(anyText(variablePhrase), (name) => /^[A-Z_][A-Z\d_]*$/.test(name), variablePhrase),
  ),
  organization: optional(nonEmptyText()),
  project: optional(nonEmptyText()),
  headers: optional(parameterMap('headers')),
  query: optional(parameterMap('query parameters')),
  timeoutMs: optional(count(1)),
  maxTokensField: optional(choice('max_tokens', 'max_completion_tokens')),
  echoReasoning: optional(union([flag(), choice(...reasoningForms)], echoPhrase)),
  hostedTools: optional(
    list(
      predicate<JsonObject>(
        (tool) => typeof (tool as { type?: unknown } | null)?.type === 'string',
        toolsPhrase,
      ),
      toolsPhrase,
    ),
  ),
  reasoningSummary: optional(choice('auto', 'concise', 'detailed')),
  encryptedReasoning: optional(flag()),
})

/** Whether the value at this path can be a misplaced secret: errors do not show it. */
export function canBeSecret(path: string): boolean {
  return /^model\.(baseURL|apiKeyEnv|headers|query|hostedTools)/.test(path)
}

function isSecretName(name: string): boolean {
  return /auth|key|token|secret|password|cookie/i.test(name)
}

function isPlainUrl(given: string): boolean {
  if (!URL.canParse(given)) return false
  const { protocol, username, password, search, hash } = new URL(given)
  return /^https?:$/.test(protocol) && [username, password, search, hash].every((part) => part === '')
}

/**
 * What a configuration file says: an agent without its tools. Secrets are never part of it; `model.apiKeyEnv` names
 * the environment variable that holds the key.
 */
export interface ConfigFile extends AgentConfigInput, RequestOptions {
  /** Where an editor finds the schema. */
  $schema?: string | undefined
  /** The model, and where it is. Left out: the command line's options and the environment say. */
  model?: ModelSection | undefined
  /** Prices of models that the built-in table does not know, or knows wrongly. */
  prices?: PriceTable | undefined
}

export const configFileKind = section({
  $schema: anyText(),
  model: modelSection,
  ...requestSections,
  prices: priceTable,
  ...agentSections,
})

/**
 * The file's settings, checked and deep-frozen: as they were written, defaults not filled in (`resolveConfig` does).
 *
 * Throws a ConfigError (`invalid_config`) that names the file: for text that is not JSON with line and column, else
 * with every problem, one a line.
 */
export function parseConfigFile(text: string, fileName: string): ConfigFile {
  const what = `configuration in ${fileName}`
  // Some editors put a byte order mark in front.
  const json = text.replace(/^\uFEFF/, '')
  const sentence = findSyntaxProblem(json)
  if (sentence !== null) throw invalidInputError(what, [{ path: '', sentence }])
  const written: unknown = JSON.parse(json)
  const given = checkInput(configFileKind, written, what, { isSecret: canBeSecret })
  // What no single key shows: settings that contradict each other.
  mergeConfig(given, defaultConfig, what)
  return deepFreeze(given)
}

/** The first place where a text is not JSON, by line and column, and what to do there; null when it is. */
function findSyntaxProblem(text: string): string | null {
  const found = findJsonProblem(text, { uniqueKeys: true })
  if (found === null) return null
  const before = text.slice(0, found.position)
  const lines = before.split(/\r\n|\r|\n/)
  const advice =
    findSyntaxAdvice(before, text.slice(found.position, found.position + 2)) ?? `${found.problem}.`
  return `Line ${lines.length}, column ${(lines.at(-1)?.length ?? 0) + 1}: ${advice[0]?.toUpperCase()}${advice.slice(1)}`
}

/** What people add to JSON that other languages know. */
function findSyntaxAdvice(before: string, here: string): string | null {
  if (/^\/[/*]|^#/.test(here)) return 'JSON has no comments. Remove this one.'
  if (/^[}\]]/.test(here) && before.trimEnd().endsWith(',')) return 'Remove the comma before this bracket.'
  return null
}
