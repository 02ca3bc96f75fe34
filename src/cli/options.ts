import type { PresetName } from '../../machines/agent/config.js'
import { omitUndefined } from '../../guards/lib/json.js'
import { readSender } from '../core/sessions/principal.js'
import type { SessionTags } from '../core/sessions/store/session-tags.js'
import { findPreset, presets } from '../core/config/presets.js'
import { modelApis } from '../core/config/config-file.js'
import { isHttpUrl } from '../core/models/openai/openai-options.js'
import { quoteShellWord } from '../core/format/shell-words.js'
import { testRunners } from '../testing/generate-tests.js'
import { badUsageError, type OptionSpec, type OptionSpecs, type ParsedOptions, parseTag } from './command.js'

/** Seconds for which a run continues after SIGTERM. */
export const drainSeconds = 20

export const storeOption = {
  store: {
    value: 'URL',
    about:
      "the session store: file:DIR, postgres://… or memory: (default: STATEWRIGHT_STORE, else the user's data folder)",
  },
} satisfies OptionSpecs

export const byOption = {
  by: { value: 'NAME', about: 'the sender of messages and answers, for the log and the approval rules' },
} satisfies OptionSpecs

export const agentModuleOption = {
  agent: {
    value: 'MODULE',
    about: 'a module whose default export is an agent, or a function of { store } that returns one',
  },
} satisfies OptionSpecs

export const agentsModuleOption = {
  agents: {
    value: 'MODULE',
    about: 'a module whose default export is defineAgents({ … }), or a function of { store } that returns it',
  },
} satisfies OptionSpecs

export const outOption = {
  out: { short: 'o', value: 'FILE', about: 'write to a file instead of stdout' },
} satisfies OptionSpecs

export const selectionOptions = {
  prefix: { value: 'TEXT', about: 'only sessions whose ids start with TEXT and a colon' },
  tag: { value: 'NAME=VALUE', about: 'only sessions with this tag; can be repeated' },
} satisfies OptionSpecs

export const runnerOption = {
  value: 'NAME',
  choices: testRunners,
  about: 'the test runner: jest (the default), vitest or node',
} as const satisfies OptionSpec

export const runOptions = {
  config: { short: 'c', value: 'FILE', about: 'a JSON configuration: model, limits, guardrails, …' },
  preset: {
    value: 'NAME',
    about: `start from another agent loop's rules: ${Object.keys(presets).join(', ')}`,
  },
  tools: {
    short: 't',
    value: 'MODULE',
    about: 'a .js, .mjs or .ts module with a list of tools as its default export',
  },
  mcp: { value: 'SERVER', about: 'an MCP server, as a command line or URL; can be repeated' },
  model: { short: 'm', value: 'NAME', about: 'the model (default: OPENAI_MODEL)' },
  'base-url': {
    value: 'URL',
    about: 'an OpenAI-compatible API, up to and including /v1 (default: OPENAI_BASE_URL)',
  },
  api: { value: 'NAME', choices: modelApis, about: 'the model API: chat (the default) or responses' },
  instructions: { short: 'i', value: 'TEXT', about: 'the system prompt' },
  rehearsal: {
    value: 'FILE',
    optional: true,
    nextWord: /^[^-\s]\S*\.json$/,
    about: 'play the demo or the scenario in FILE, without calling a model',
  },
  ...storeOption,
  ...byOption,
  drain: {
    value: 'SECONDS',
    min: 0,
    about: `after SIGTERM, how long the run continues before another process can resume it (default: ${drainSeconds})`,
  },
  json: { about: 'print the RunResult as one line of JSON' },
  events: { about: 'print each AgentEvent as one line of JSON' },
  inspect: { about: "watch the run in Stately's inspector, in a browser on this machine" },
} as const satisfies OptionSpecs

export type CommonOptions = ReturnType<typeof readCommonOptions>

/** @throws {CliError | ConfigError} for invalid or contradictory options */
export function readCommonOptions({ values, all }: Pick<ParsedOptions<typeof runOptions>, 'values' | 'all'>) {
  excludeBoth(values, 'json', 'events', 'Choose one output format')
  excludeBoth(values, 'rehearsal', 'model', 'A rehearsal does not call a model')
  excludeBoth(values, 'rehearsal', 'base-url', 'A rehearsal does not call a model')
  const { 'base-url': baseURL, preset, by, drain = drainSeconds, rehearsal = false, inspect = false } = values
  if (baseURL !== undefined) checkURL(baseURL, '--base-url')
  if (preset !== undefined) findPreset(preset, '--preset')
  const { config, tools, model, api, instructions, store } = values
  const output: 'human' | 'json' | 'events' = values.json ? 'json' : values.events ? 'events' : 'human'
  const plain = { config, tools, model, baseURL, api, instructions, store, output, inspect }
  return {
    ...plain,
    preset: preset as PresetName | undefined,
    mcp: all('mcp'),
    rehearsal,
    by: readSender({ by }, '--by').by?.id,
    /** How long a run with a stored session continues after SIGTERM. */
    drainMs: 1000 * drain,
  }
}

/** The sessions that `--prefix` and `--tag` select. */
export function readSelection({
  values,
  all,
}: Pick<ParsedOptions<typeof selectionOptions>, 'values' | 'all'>): { prefix?: string; tags?: SessionTags } {
  const tags = all('tag').map(parseTag)
  return omitUndefined({
    prefix: values.prefix,
    tags: tags.length > 0 ? Object.fromEntries(tags) : undefined,
  })
}

/** @throws {CliError} `bad_usage` without the option */
export function expectAgentModule(agent: string | undefined): string {
  if (agent !== undefined) return agent
  throw badUsageError('Pass the module that exports the agent: --agent ./agent.mjs.', '--agent')
}

/** @throws {CliError} `bad_usage` for an option that is only for use with another one, such as `--all` */
export function refuseStray<Name extends string>(
  values: { readonly [Key in Name]?: unknown },
  names: readonly Name[],
  needed: string,
): void {
  const stray = names.find((name) => values[name] !== undefined)
  if (stray !== undefined) throw badUsageError(`--${stray} needs ${needed}.`, `--${stray}`)
}

/** @throws {CliError} `bad_usage` if both options are present */
export function excludeBoth<Name extends string>(
  values: { readonly [Key in Name]?: unknown },
  one: Name,
  other: Name,
  why: string,
): void {
  if (values[one] !== undefined && values[other] !== undefined)
    throw badUsageError(`--${one} and --${other} cannot be combined. ${why}.`)
}

/** Each has a leading space. A value that may contain a secret is replaced by `…`, because output often ends up in logs. */
export function formatCarriedOptions(
  options: {
    readonly [Name in keyof CommonOptions]?: CommonOptions[Name] | undefined
  },
): string {
  const formatOne = (name: string, value: string | boolean | undefined): string => {
    if (value === undefined || value === false) return ''
    if (value === true) return ` --${name}`
    return mayHoldSecret(value) ? ` --${name} …` : ` --${name}=${quoteShellWord(value)}`
  }
  return carriedOptions
    .flatMap((name) =>
      [options[name]].flat().map((value) => formatOne(name === 'baseURL' ? 'base-url' : name, value)),
    )
    .join('')
}

const carriedOptions = [
  'store',
  'config',
  'preset',
  'tools',
  'mcp',
  'model',
  'baseURL',
  'api',
  'instructions',
  'rehearsal',
] as const

/** Whether a value is a URL with a password or a query, or starts with an environment variable. */
function mayHoldSecret(value: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\/[^/]*@|^https?:\/\/.*[?]|^[A-Za-z_]\w*=/i.test(value)
}

/** Validates an http(s) URL. `origin` is the option or variable that contains it. */
export function checkURL(url: string, origin: string): string {
  const isUsable: boolean = isHttpUrl(url)
  if (isUsable) return url
  const problem = `must be an http(s) URL, such as http://localhost:11434/v1 (got '${url}')`
  throw badUsageError(`${origin} ${problem}.`, origin)
}
