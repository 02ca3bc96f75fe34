import type { ConfigFile } from '../core/config/config-file.js'
import { apiOnlyKeys, type ModelApi } from '../core/config/model-section.js'
import { ConfigError } from '../core/base/errors.js'
import { openaiChat, type OpenAIChatOptions } from '../core/models/openai/openai-chat.js'
import {
  openaiResponses,
  type OpenAIResponsesOptions,
} from '../core/models/openai/responses/openai-responses.js'
import type { ModelProvider } from '../core/models/provider.js'
import { badUsageError, CliError } from './cli-error.js'
import type { CliIO } from './command.js'
import { checkURL, type CommonOptions } from './commands/common-options.js'

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
