import { resolve } from 'node:path'
import { type ConfigFile, type ModelApi, apiOnlyKeys } from '../core/config/config-file.js'
import type { ModelProvider } from '../core/models/provider.js'
import type { ToolEntry } from '../core/tools/tool-set.js'
import type { PriceOverrides } from '../core/prices/price-book.js'
import { ConfigError } from '../core/base/errors.js'
import {
  openaiChat,
  type OpenAIChatOptions,
  openaiResponses,
  type OpenAIResponsesOptions,
} from '../core/models/openai/openai-provider.js'
import { CliError, badUsageError } from './cli-error.js'
import type { CliIO } from './command.js'
import { type CommonOptions, checkURL } from './commands/common-options.js'

/** The model of a run, real or a rehearsal, with what belongs to it. */
export interface ModelSetup {
  model: ModelProvider
  /** The tools for a run without `--tools`. */
  tools: readonly ToolEntry[]
  prices?: PriceOverrides
  /** The prompt for a run without one. */
  prompt?: string
  /** A text for the user before the run. */
  opening?: string
  /** A text for the user after the run. */
  closing?: string
  close(): Promise<void>
}

/** Whether no model is called: a rehearsal is requested, or no model is configured. */
export function isRehearsal(options: CommonOptions, file: ConfigFile, { env }: CliIO): boolean {
  return options.rehearsal !== false || resolveModelOptions(options, file, env) === null
}

/** The default rehearsal must not write to a stored session. */
export function rejectImplicitRehearsal(options: CommonOptions, file: ConfigFile, { env }: CliIO): void {
  if (options.rehearsal !== false || resolveModelOptions(options, file, env) !== null) return
  throw new CliError(
    'no_model',
    'There is no OPENAI_API_KEY and no base URL, so there is no model for this session. Set the key, name a ' +
      'server with --base-url, or play a scenario with --rehearsal=FILE.',
    'model',
  )
}

/** Throws a CliError or ConfigError for an incomplete model, a RehearsalError for a bad scenario. */
export async function openModelSetup(
  options: CommonOptions,
  file: ConfigFile,
  io: CliIO,
): Promise<ModelSetup> {
  const api = resolveApi(options, file)
  if (options.rehearsal !== false) return openRehearsal(options.rehearsal, api, io)
  const model = resolveModelOptions(options, file, io.env)
  if (model === null) {
    const setup = await openRehearsal(true, api, io)
    return { ...setup, opening: `There is no OPENAI_API_KEY and no base URL. ${setup.opening}` }
  }
  return { model: createModel(api, model), tools: [], close: () => Promise.resolve() }
}

/** The next step after the demo. */
const realModelHint =
  'To ask a real model:  OPENAI_API_KEY=… statewright run "Your question"\n' +
  'or a local one:       statewright run --base-url http://localhost:11434/v1 --model NAME "Your question"'

async function openRehearsal(scenario: true | string, api: ModelApi, io: CliIO): Promise<ModelSetup> {
  const { largestExpense, loadScenario, startRehearsal } = await import('../rehearsal/index.js')
  const { createDemoTools } = await import('./demo-tools.js')
  const name = 'rehearsal'
  const isBuiltIn = scenario === true
  const script = isBuiltIn ? largestExpense : await loadScenario(resolve(io.cwd, scenario))
  const rehearsal = await startRehearsal({ scenario: script, strict: true })
  return {
    model: createModel(api, { model: name, provider: name, baseURL: rehearsal.url, apiKey: name }),
    tools: createDemoTools(),
    prices: { [name]: { inputPerMillion: 0, outputPerMillion: 0 } },
    prompt: isBuiltIn ? 'What was the largest expense of the quarter? It is all in the notes.' : 'Begin.',
    opening: `This is a rehearsal: a local server plays '${script.name ?? scenario}', and no model is called.`,
    ...(isBuiltIn && { closing: realModelHint }),
    close: () => rehearsal.close(),
  }
}

const defaultModel = 'gpt-5-mini'

/** The key for a server without one: OpenAI's key must not be sent to it. */
const noKey = 'no-key-needed'

/**
 * The model and its server: options override the configuration file, which overrides the environment. Null without a key and
 * a base URL. The key comes from the variable `model.apiKeyEnv` of the file; a base URL of the file without it gets no key.
 */
export function resolveModelOptions(
  options: Pick<CommonOptions, 'model' | 'baseURL'>,
  file: ConfigFile,
  env: CliIO['env'],
): (OpenAIChatOptions & OpenAIResponsesOptions) | null {
  const { api: _api, apiKeyEnv, model: fileModel, baseURL: fileURL, ...rest } = file.model ?? {}
  const baseURL = options.baseURL ?? fileURL ?? readBaseUrl(env)
  const isOfFile = options.baseURL === undefined && fileURL !== undefined
  const apiKey =
    apiKeyEnv !== undefined
      ? readKey(apiKeyEnv, env)
      : isOfFile
        ? undefined
        : trimToUndefined(env.OPENAI_API_KEY)
  if (apiKey === undefined && baseURL === undefined) return null

  const model =
    options.model ??
    fileModel ??
    trimToUndefined(env.OPENAI_MODEL) ??
    (baseURL === undefined ? defaultModel : undefined)
  if (model === undefined) {
    throw badUsageError(`Which model of ${baseURL}? Give --model NAME, or set OPENAI_MODEL.`, '--model')
  }
  return { ...rest, model, baseURL, apiKey: apiKey ?? noKey }
}

/** The API of the options, else of the configuration file. */
export function resolveApi({ api }: Pick<CommonOptions, 'api'>, file: ConfigFile): ModelApi {
  return api ?? file.model?.api ?? 'chat'
}

/** Creates the model. Throws a ConfigError for keys of the other API. */
export function createModel(
  api: ModelApi,
  options: OpenAIChatOptions & OpenAIResponsesOptions,
): ModelProvider {
  const other = api === 'chat' ? 'responses' : 'chat'
  const foreign = apiOnlyKeys[other].find((key) => options[key as keyof typeof options] !== undefined)
  if (foreign !== undefined) {
    const key = `model.${foreign}`
    throw new ConfigError(
      'invalid_config',
      `${key} is only for the API '${other}', but the API is '${api}'.`,
      key,
    )
  }
  return api === 'chat' ? openaiChat(options) : openaiResponses(options)
}

function readKey(name: string, env: CliIO['env']): string {
  const key = trimToUndefined(env[name])
  if (key !== undefined) return key
  throw new CliError(
    'missing_api_key',
    `${name} is not set. The configuration file names it as the variable with the key.`,
    name,
  )
}

function readBaseUrl(env: CliIO['env']): string | undefined {
  const url = trimToUndefined(env.OPENAI_BASE_URL)
  return url === undefined ? undefined : checkURL(url, 'OPENAI_BASE_URL')
}

function trimToUndefined(value: string | undefined): string | undefined {
  return value?.trim() || undefined
}
