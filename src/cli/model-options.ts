import type { ConfigFile } from '../core/config/file.js'
import type { OpenAIChatOptions } from '../core/models/openai/options.js'
import { badUsage, CliError } from './cli-error.js'
import type { CliIO } from './command.js'
import { checkedURL, type CommonOptions } from './commands/common-options.js'

const defaultModel = 'gpt-5-mini'

/** What a server gets that was given no key: never the one of OpenAI, which is not meant for it. */
const noKey = 'no-key-needed'

/**
 * Which model to call, and where: options before the configuration file before the environment. Null when there is
 * neither a key nor a base URL. The key is `model.apiKeyEnv`'s where the file has one; a base URL of the file that
 * has none gets no key at all.
 */
export function modelOptions(
  options: Pick<CommonOptions, 'model' | 'baseURL'>,
  file: ConfigFile,
  env: CliIO['env'],
): OpenAIChatOptions | null {
  const { apiKeyEnv, model: fileModel, baseURL: fileURL, ...rest } = file.model ?? {}
  const baseURL = options.baseURL ?? fileURL ?? urlFrom(env)
  const isOfFile = options.baseURL === undefined && fileURL !== undefined
  const apiKey =
    apiKeyEnv !== undefined ? keyFrom(apiKeyEnv, env) : isOfFile ? undefined : present(env.OPENAI_API_KEY)
  if (apiKey === undefined && baseURL === undefined) return null

  const model =
    options.model ??
    fileModel ??
    present(env.OPENAI_MODEL) ??
    (baseURL === undefined ? defaultModel : undefined)
  if (model === undefined) {
    throw badUsage(`Which model of ${baseURL}? Give --model NAME, or set OPENAI_MODEL.`, '--model')
  }
  return { ...rest, model, baseURL, apiKey: apiKey ?? noKey }
}

function keyFrom(name: string, env: CliIO['env']): string {
  const key = present(env[name])
  if (key !== undefined) return key
  throw new CliError(
    'missing_api_key',
    `${name} is not set; the configuration file says that it holds the key.`,
    name,
  )
}

function urlFrom(env: CliIO['env']): string | undefined {
  const url = present(env.OPENAI_BASE_URL)
  return url === undefined ? undefined : checkedURL(url, 'OPENAI_BASE_URL')
}

function present(value: string | undefined): string | undefined {
  return value?.trim() || undefined
}
