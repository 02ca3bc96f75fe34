import type { JsonObject } from '../../../machines/agent/json.js'
import {
  type OpenAIChatOptions,
  type OpenAIResponsesOptions,
  reasoningForms,
} from '../models/openai/openai-options.js'
import * as is from './kind.js'
import type { AgentConfigInput } from '../../../machines/agent/config.js'
import { checkInput, invalidInputError } from './check-input.js'
import { defaultConfig } from './defaults.js'
import { deepFreeze } from '../base/values.js'
import { findJsonProblem, readProperty } from '../base/json.js'
import { mergeConfig } from './resolve-config.js'
import { type PriceTable, priceTable } from './price-table.js'
import { type RequestOptions, requestSections } from './request-options.js'
import { agentSections } from './agent-sections.js'

/** The model in a configuration file: plain, non-secret options of `openaiChat` and `openaiResponses`. */
export interface ModelSection
  extends Pick<
    OpenAIChatOptions & OpenAIResponsesOptions,
    | 'model'
    | 'provider'
    | 'organization'
    | 'project'
    | 'headers'
    | 'query'
    | 'timeoutMs'
    | 'maxTokensField'
    | 'echoReasoning'
    | 'reasoningSummary'
    | 'encryptedReasoning'
  > {
  /** The API: Chat Completions or Responses. Defaults to `chat`. */
  api?: ModelApi | undefined
  /** Base URL of the API, including `/v1`. */
  baseURL?: string | undefined
  /** Environment variable that contains the key. Defaults to OPENAI_API_KEY, unless `baseURL` points elsewhere. */
  apiKeyEnv?: string | undefined
  /** Tools that the provider runs. Only for `responses`. */
  hostedTools?: JsonObject[] | undefined
}

export type ModelApi = (typeof modelApis)[number]

export const modelApis = ['chat', 'responses'] as const

export const apiOnlyKeys: Readonly<Record<ModelApi, readonly (keyof ModelSection)[]>> = {
  chat: ['maxTokensField', 'echoReasoning'],
  responses: ['hostedTools', 'reasoningSummary', 'encryptedReasoning'],
}

const noSecretHint = 'put the key into an environment variable and set model.apiKeyEnv to its name'

const parameterMap = (what: string) =>
  is.refine(
    is.map(is.nonEmptyText(), 'an object with string values'),
    (value) => !Object.keys(value).some(isSecretName),
    `${what} without secrets: ${noSecretHint}`,
  )

const urlPhrase = 'an http(s) URL without user, password, query or fragment'
const variablePhrase =
  'the name of an environment variable in capitals, such as OPENAI_API_KEY; files must not contain the key itself'
const echoPhrase = "true, false, 'reasoning_content', 'reasoning' or 'thinking'"
const toolsPhrase = "a list of tools with a type, such as [{ type: 'web_search' }]"

const modelSection = is.record({
  model: is.nonEmptyText('a model name'),
  api: is.optional(is.choice(...modelApis)),
  provider: is.optional(is.nonEmptyText()),
  baseURL: is.optional(is.refine(is.anyText(urlPhrase), isPlainUrl, urlPhrase)),
  apiKeyEnv: is.optional(
    is.refine(is.anyText(variablePhrase), (name) => /^[A-Z_][A-Z\d_]*$/.test(name), variablePhrase),
  ),
  organization: is.optional(is.nonEmptyText()),
  project: is.optional(is.nonEmptyText()),
  headers: is.optional(parameterMap('headers')),
  query: is.optional(parameterMap('query parameters')),
  timeoutMs: is.optional(is.count(1)),
  maxTokensField: is.optional(is.choice('max_tokens', 'max_completion_tokens')),
  echoReasoning: is.optional(is.union([is.flag(), is.choice(...reasoningForms)], echoPhrase)),
  hostedTools: is.optional(is.list(is.predicate<JsonObject>(hasType, toolsPhrase), toolsPhrase)),
  reasoningSummary: is.optional(is.choice('auto', 'concise', 'detailed')),
  encryptedReasoning: is.optional(is.flag()),
})

function hasType(tool: unknown): boolean {
  return typeof readProperty(tool, 'type') === 'string'
}

/** Whether the value at this path may be a misplaced secret, which must not appear in errors. */
function canBeSecret(path: string): boolean {
  return /^model\.(baseURL|apiKeyEnv|headers|query|hostedTools)/.test(path)
}

function isSecretName(name: string): boolean {
  return /auth|key|token|secret|password|cookie/i.test(name)
}

function isPlainUrl(value: string): boolean {
  if (!URL.canParse(value)) return false
  const { protocol, username, password, search, hash } = new URL(value)
  return /^https?:$/.test(protocol) && [username, password, search, hash].every((part) => part === '')
}

/**
 * A configuration file, which describes an agent without its tools. It never contains secrets. `model.apiKeyEnv` names
 * the environment variable with the key.
 */
export interface ConfigFile extends AgentConfigInput, RequestOptions {
  /** Location of the schema for editors. */
  $schema?: string | undefined
  /** The model. Defaults to the command line options and the environment. */
  model?: ModelSection | undefined
  /** Prices for models that are missing or wrong in the built-in table. */
  prices?: PriceTable | undefined
}

export const configFileKind = is.section({
  $schema: is.anyText(),
  model: modelSection,
  ...requestSections,
  prices: priceTable,
  ...agentSections,
})

/**
 * Parses a configuration file and freezes the result without filling in defaults (`resolveConfig` does that). Throws
 * a ConfigError (`invalid_config`) that names the file. For a syntax error, the error contains the line and column.
 * Otherwise it lists all problems, one per line.
 */
export function parseConfigFile(text: string, fileName: string): ConfigFile {
  const what = `configuration in ${fileName}`
  // Some editors add a byte order mark.
  const json = text.replace(/^\uFEFF/, '')
  const sentence = findSyntaxProblem(json)
  if (sentence !== null) throw invalidInputError(what, [{ path: '', sentence }])
  const written: unknown = JSON.parse(json)
  const value = checkInput(configFileKind, written, what, { isSecret: canBeSecret })
  // Detects contradictory settings.
  mergeConfig(value, defaultConfig, what)
  return deepFreeze(value)
}

function findSyntaxProblem(text: string): string | null {
  const found = findJsonProblem(text, { uniqueKeys: true })
  if (found === null) return null
  const before = text.slice(0, found.position)
  const lines = before.split(/\r\n|\r|\n/)
  const advice =
    findSyntaxAdvice(before, text.slice(found.position, found.position + 2)) ?? `${found.problem}.`
  return `Line ${lines.length}, column ${(lines.at(-1)?.length ?? 0) + 1}: ${advice[0]?.toUpperCase()}${advice.slice(1)}`
}

/** Advice for syntax that is valid in similar languages. */
function findSyntaxAdvice(before: string, here: string): string | null {
  if (/^\/[/*]|^#/.test(here)) return 'JSON has no comments. Remove this one.'
  if (/^[}\]]/.test(here) && before.trimEnd().endsWith(',')) return 'Remove the comma before this bracket.'
  return null
}
