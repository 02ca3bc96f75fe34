import { resolve } from 'node:path'
import type { Agent, AgentOptions } from '../core/agent/agent-options.js'
import { createAgent } from '../core/agent/agent.js'
import { ConfigError } from '../core/base/errors.js'
import { apiOnlyKeys, type ConfigFile, type ModelApi } from '../core/config/config-file.js'
import {
  openaiChat,
  type OpenAIChatOptions,
  openaiResponses,
  type OpenAIResponsesOptions,
} from '../core/models/openai/openai-provider.js'
import type { ModelProvider } from '../core/models/provider.js'
import type { PriceOverrides } from '../core/prices/price-book.js'
import type { SessionStore } from '../core/sessions/store/store.js'
import type { ToolEntry } from '../core/tools/tool-set.js'
import { badUsageError, CliError, type CliIO, writeNotice } from './command.js'
import { loadTools } from './load.js'
import { createMcpAuth, openMcp } from './mcp-servers.js'
import { checkURL, type CommonOptions } from './options.js'
import { toTarget } from '../core/sessions/inbox/session-message.js'
import type { Answer } from './prompt.js'

interface ModelSetup {
  model: ModelProvider
  /** The tools for a run without `--tools`. */
  tools: readonly ToolEntry[]
  prices?: PriceOverrides
  prompt?: string
  /** Settings that can be overridden by the file and the options. */
  settings?: Partial<AgentOptions>
  opening?: string
  closing?: string
  /** The answer to the run's question if no user can answer it. */
  answer?: Answer
  close(): Promise<void>
}

interface AgentSpec {
  options: CommonOptions
  file: ConfigFile
  store: SessionStore
  overrides?: Partial<Pick<AgentOptions, 'limits' | 'stream'>>
}

/** Creates the agent for the options. Closes its model and its MCP servers afterwards. */
export async function withAgent<Value>(
  { options, file, store, overrides = {} }: AgentSpec,
  io: CliIO,
  use: (agent: Agent, setup: ModelSetup) => Promise<Value>,
): Promise<Value> {
  const tools = options.tools === undefined ? undefined : await loadTools(options.tools, io.cwd)
  const setup = await openModelSetup(options, file, io)
  let mcp: Awaited<ReturnType<typeof openMcp>> | undefined
  try {
    const warn = (warning: string): void => writeNotice(io, warning)
    mcp = await openMcp(options.mcp, io.cwd, warn, () => createMcpAuth(io))
    const { $schema: _schema, model: _model, ...settings } = file
    const agent = createAgent({
      ...setup.settings,
      // Values from JSON are never undefined.
      ...(settings as Omit<AgentOptions, 'model'>),
      ...(options.instructions !== undefined && { instructions: options.instructions }),
      ...(options.preset !== undefined && { preset: options.preset }),
      ...(setup.prices && { prices: setup.prices }),
      ...overrides,
      limits: { ...setup.settings?.limits, ...file.limits, ...overrides.limits },
      model: setup.model,
      tools: [...(tools ?? setup.tools), ...mcp.entries],
      store,
    })
    return await use(agent, setup)
  } finally {
    await mcp?.close()
    await setup.close()
  }
}

/** @throws {CliError | ConfigError} for an incomplete model, a RehearsalError for an invalid scenario */
async function openModelSetup(options: CommonOptions, file: ConfigFile, io: CliIO): Promise<ModelSetup> {
  const api = resolveApi(options, file)
  if (options.rehearsal !== false) return openRehearsal(options.rehearsal, api, io)
  const model = expectModelOptions(options, file, io)
  return { model: createModel(api, model), tools: [], close: () => Promise.resolve() }
}

type ModelOptions = OpenAIChatOptions & OpenAIResponsesOptions

/** @throws {CliError} `no_model` */
export function expectModelOptions(options: CommonOptions, file: ConfigFile, { env }: CliIO): ModelOptions {
  const model = resolveModelOptions(options, file, env)
  if (model !== null) return model
  throw new CliError(
    'no_model',
    'No model is configured. Set OPENAI_API_KEY, specify a server with --base-url URL, or play a script without a model: ' +
      '--rehearsal.',
    'model',
  )
}

const realModelHint = `To ask a real model:
  OPENAI_API_KEY=… statewright run "Your question"
or a local one:
  statewright run --base-url http://localhost:11434/v1 --model NAME "…"`

async function openRehearsal(file: true | string, api: ModelApi, io: CliIO): Promise<ModelSetup> {
  const { loadScenario, startRehearsal } = await import('../rehearsal/index.js')
  const { createDemoScenario, createDemoTools, demoPrompt, demoSettings } = await import('./demo.js')
  const name = 'rehearsal'
  const scenario = file === true ? createDemoScenario() : await loadScenario(resolve(io.cwd, file))
  const rehearsal = await startRehearsal({ scenario, strict: true })
  return {
    model: createModel(api, { model: name, provider: name, baseURL: rehearsal.url, apiKey: 'none' }),
    tools: createDemoTools(),
    prices: { [name]: { inputPerMillion: 0, outputPerMillion: 0 } },
    prompt: 'Begin.',
    opening: `A rehearsal: a local server plays '${scenario.name ?? file}', and no model is called.`,
    close: () => rehearsal.close(),
    ...(file === true && {
      prompt: demoPrompt,
      settings: demoSettings,
      closing: realModelHint,
      answer: ({ pending = [] }) => pending.map((call) => ({ type: 'approve', ...toTarget(call) })),
    }),
  }
}

/**
 * Options override the configuration file, which overrides the environment. Null if there is neither a key nor a base
 * URL. If the file sets a base URL but not `model.apiKeyEnv`, no API key is used.
 */
export function resolveModelOptions(
  options: Pick<CommonOptions, 'model' | 'baseURL'>,
  file: ConfigFile,
  env: CliIO['env'],
): ModelOptions | null {
  const { api: _api, apiKeyEnv, model: fileModel, baseURL: fileURL, ...rest } = file.model ?? {}
  const envURL = trimToUndefined(env.OPENAI_BASE_URL)
  const baseURL = options.baseURL ?? fileURL ?? (envURL && checkURL(envURL, 'OPENAI_BASE_URL'))
  const usesEnv = options.baseURL !== undefined || fileURL === undefined
  const ownKey = usesEnv ? trimToUndefined(env.OPENAI_API_KEY) : undefined
  const apiKey = apiKeyEnv === undefined ? ownKey : readKey(apiKeyEnv, env)
  if (apiKey === undefined && baseURL === undefined) return null

  const fallback = baseURL === undefined ? 'gpt-5-mini' : undefined
  const model = options.model ?? fileModel ?? trimToUndefined(env.OPENAI_MODEL) ?? fallback
  if (model === undefined)
    throw badUsageError(`No model is named for ${baseURL}. Use --model NAME, or set OPENAI_MODEL.`, '--model')
  // OpenAI's key must not be sent to a server that needs no key.
  return { ...rest, model, baseURL, apiKey: apiKey ?? 'no-key-needed' }
}

export function resolveApi({ api }: Pick<CommonOptions, 'api'>, file: ConfigFile): ModelApi {
  return api ?? file.model?.api ?? 'chat'
}

/** @throws {ConfigError} for keys of the other API */
export function createModel(api: ModelApi, options: ModelOptions): ModelProvider {
  const other = api === 'chat' ? 'responses' : 'chat'
  const foreign = apiOnlyKeys[other].find((key) => options[key as keyof typeof options] !== undefined)
  if (foreign !== undefined) {
    const key = `model.${foreign}`
    const message = `${key} is only for the API '${other}', but the API is '${api}'.`
    throw new ConfigError('invalid_config', message, key)
  }
  return api === 'chat' ? openaiChat(options) : openaiResponses(options)
}

function readKey(name: string, env: CliIO['env']): string {
  const key = trimToUndefined(env[name])
  if (key !== undefined) return key
  throw new CliError(
    'missing_api_key',
    `${name} is not set. The configuration file expects the key in this variable.`,
    name,
  )
}

function trimToUndefined(value: string | undefined): string | undefined {
  return value?.trim() || undefined
}
