import type { PresetName } from '../../../machines/agent/config.js'
import { findPreset, presets } from '../../core/config/presets.js'
import { type ModelApi, modelApis } from '../../core/config/config-file.js'
import { isHttpUrl } from '../../core/models/openai/openai-options.js'
import { type TestRunner, testRunners } from '../../testing/generate-tests.js'
import { badUsageError } from '../cli-error.js'
import { drainSeconds } from '../drain.js'
import { type GivenOptions, type OptionSpecs, parseWholeNumber } from '../parse-options.js'
import { quoteShellWord } from '../../core/format/shell-words.js'

/** Options of all commands that run an agent: the agent, the session store and the output. */

export const agentOptionSpecs = {
  config: { short: 'c', value: 'FILE', about: 'a JSON configuration: model, limits, guardrails, …' },
  preset: { value: 'NAME', about: `the rules of another loop: ${Object.keys(presets).join(', ')}` },
  tools: {
    short: 't',
    value: 'MODULE',
    about: 'a .js or .mjs module with a list of tools as its default export',
  },
  mcp: { value: 'SERVER', about: 'an MCP server, as a command line or URL; may be repeated' },
  model: { short: 'm', value: 'NAME', about: 'the model (OPENAI_MODEL)' },
  'base-url': { value: 'URL', about: 'an OpenAI-compatible API, up to and including /v1 (OPENAI_BASE_URL)' },
  api: { value: 'NAME', about: 'the API of the model: chat (the default) or responses' },
  instructions: { short: 'i', value: 'TEXT', about: 'the system prompt' },
  rehearsal: { value: 'FILE', optional: true, about: 'play a scenario instead of calling a model' },
} satisfies OptionSpecs

export const storeOptionSpec = {
  store: {
    value: 'URL',
    about:
      'the session store: file:DIR, postgres://… or memory: (STATEWRIGHT_STORE; default: a folder of the user)',
  },
} satisfies OptionSpecs

export const drainOptionSpec = {
  drain: {
    value: 'SECONDS',
    about: `after SIGTERM, how long the run goes on before another process can resume it (default: ${drainSeconds})`,
  },
} satisfies OptionSpecs

export const outputOptionSpecs = {
  json: { about: 'print one line: the RunResult' },
  events: { about: 'print each AgentEvent on one line, as it happens' },
  inspect: { about: "watch the run in Stately's inspector, in a browser on this machine" },
  help: { short: 'h', about: 'show this help' },
} satisfies OptionSpecs

type CommonOption =
  | keyof typeof agentOptionSpecs
  | keyof typeof storeOptionSpec
  | keyof typeof drainOptionSpec
  | keyof typeof outputOptionSpecs

export type OutputForm = 'human' | 'json' | 'events'

export interface CommonOptions {
  config: string | undefined
  preset: PresetName | undefined
  tools: string | undefined
  mcp: readonly string[]
  model: string | undefined
  baseURL: string | undefined
  api: ModelApi | undefined
  instructions: string | undefined
  /** True: the built-in scenario; a string: a scenario file; false: no rehearsal. */
  rehearsal: boolean | string
  store: string | undefined
  /** How long a run with a stored session goes on after SIGTERM. */
  drainMs: number
  output: OutputForm
  inspect: boolean
}

/** Throws a CliError for invalid or contradictory options. */
export function readCommonOptions({ all, text, has }: GivenOptions<CommonOption>): CommonOptions {
  const refuseBoth = (one: CommonOption, other: CommonOption, why: string): void => {
    if (has(one) && has(other)) throw badUsageError(`--${one} and --${other} exclude each other: ${why}.`)
  }
  refuseBoth('json', 'events', 'choose one form of output')
  refuseBoth('rehearsal', 'model', 'a rehearsal calls no model')
  refuseBoth('rehearsal', 'base-url', 'a rehearsal calls no model')

  const baseURL = text('base-url')
  if (baseURL !== undefined) checkURL(baseURL, '--base-url')
  return {
    config: text('config'),
    preset: parsePreset(text('preset')),
    tools: text('tools'),
    mcp: all('mcp'),
    model: text('model'),
    baseURL,
    api: parseApi(text('api')),
    instructions: text('instructions'),
    rehearsal: text('rehearsal') ?? has('rehearsal'),
    store: text('store'),
    drainMs: 1000 * (parseWholeNumber('--drain', text('drain'), 0) ?? drainSeconds),
    output: has('json') ? 'json' : has('events') ? 'events' : 'human',
    inspect: has('inspect'),
  }
}

function parsePreset(given: string | undefined): PresetName | undefined {
  if (given !== undefined) findPreset(given, '--preset')
  return given as PresetName | undefined
}

function parseApi(given: string | undefined): ModelApi | undefined {
  const api = modelApis.find((name) => name === given)
  if (given === undefined || api !== undefined) return api
  throw badUsageError(`--api must be ${modelApis.join(' or ')} (is '${given}').`, '--api')
}

/** `--rehearsal FILE.json` is `--rehearsal=FILE.json`; after `--rehearsal`, anything else is the prompt. */
export function inlineScenario(args: readonly string[]): string[] {
  const at = args.indexOf('--rehearsal')
  const file = args[at + 1]
  const end = args.indexOf('--')
  const isOption = at >= 0 && (end < 0 || at < end)
  if (!isOption || file === undefined || !/^[^-\s]\S*\.json$/.test(file)) return [...args]
  return args.toSpliced(at, 2, `--rehearsal=${file}`)
}

/**
 * The options that a later command needs, as text to type; each with a space before it. A value that may contain a secret is
 * replaced by `…`, because output ends up in logs.
 */
export function formatCarriedOptions(options: Partial<CommonOptions>): string {
  const { store, config, preset, tools, mcp = [], model, baseURL, api, instructions, rehearsal } = options
  const given: [string, string | undefined][] = [
    ['store', store],
    ['config', config],
    ['preset', preset],
    ['tools', tools],
    ...mcp.map((server): [string, string] => ['mcp', server]),
    ['model', model],
    ['base-url', baseURL],
    ['api', api],
    ['instructions', instructions],
    ['rehearsal', rehearsal === true ? '' : rehearsal || undefined],
  ]
  return given
    .map(([name, value]) => {
      if (value === undefined) return ''
      if (value === '') return ` --${name}`
      return mayHoldSecret(value) ? ` --${name} …` : ` --${name}=${quoteShellWord(value)}`
    })
    .join('')
}

/** A URL with a password or a query, or a variable before a command. */
function mayHoldSecret(value: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\/[^/]*@|^https?:\/\/.*[?]|^[A-Za-z_]\w*=/i.test(value)
}

/** Returns an http(s) URL. `origin`: the option or variable that has it. */
export function checkURL(url: string, origin: string): string {
  const isUsable: boolean = isHttpUrl(url)
  if (isUsable) return url
  throw badUsageError(
    `${origin} must be an http(s) URL, such as http://localhost:11434/v1 (is '${url}').`,
    origin,
  )
}

export const runnerOption = {
  value: 'NAME',
  about: 'the test runner: jest (the default), vitest or node',
} satisfies OptionSpecs[string]

/** @throws {CliError} `bad_usage` */
export function parseRunner(name = 'jest'): TestRunner {
  const runner = testRunners.find((known) => known === name)
  if (runner) return runner
  throw badUsageError(`--runner must be ${testRunners.join(', ')} (is '${name}').`, '--runner')
}
