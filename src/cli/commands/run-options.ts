import { badUsage } from '../cli-error.js'
import { checkedURL } from '../model-options.js'
import { type OptionSpecs, parseOptions } from '../options.js'

export const runOptionSpecs = {
  config: { short: 'c', value: 'FILE', about: 'a JSON configuration: model, limits, guardrails, …' },
  tools: {
    short: 't',
    value: 'MODULE',
    about: 'a .js or .mjs module with a list of tools as its default export',
  },
  session: { value: 'ID', about: 'the session id that events and result carry (default: a new one)' },
  model: { short: 'm', value: 'NAME', about: 'the model (OPENAI_MODEL)' },
  'base-url': { value: 'URL', about: 'an OpenAI-compatible API, up to and including /v1 (OPENAI_BASE_URL)' },
  instructions: { short: 'i', value: 'TEXT', about: 'the system prompt' },
  'max-steps': { value: 'N', about: 'stop after so many model responses (limits.maxSteps)' },
  timeout: { value: 'MS', about: 'stop after so many milliseconds; 0 is off (limits.timeoutMs)' },
  'no-stream': { about: 'ask for whole responses instead of streamed ones' },
  json: { about: 'print one line: the RunResult' },
  events: { about: 'print one AgentEvent a line, as it happens' },
  inspect: { about: "watch the run in Stately's inspector, in a browser on this machine" },
  rehearsal: { value: 'FILE', optional: true, about: 'play a scenario instead of calling a model' },
  help: { short: 'h', about: 'show this help' },
} satisfies OptionSpecs

export interface RunOptions {
  /** Undefined: none was given. `-` is stdin. */
  prompt: string | undefined
  config: string | undefined
  tools: string | undefined
  session: string | undefined
  model: string | undefined
  baseURL: string | undefined
  instructions: string | undefined
  limits: { maxSteps?: number; timeoutMs?: number }
  stream: boolean
  output: 'human' | 'json' | 'events'
  inspect: boolean
  /** True: the built-in scenario; a string: a scenario file; false: not asked for. */
  rehearsal: boolean | string
}

/** What `statewright run` was asked to do. Throws a CliError for what contradicts itself or makes no sense. */
export function readRunOptions(args: readonly string[]): RunOptions {
  const { values, positionals } = parseOptions(scenarioInline(args), runOptionSpecs)
  const text = (name: keyof typeof runOptionSpecs): string | undefined => {
    const value = values.get(name)
    return value === true ? undefined : value
  }
  const refuseBoth = (
    one: keyof typeof runOptionSpecs,
    other: keyof typeof runOptionSpecs,
    why: string,
  ): void => {
    if (values.has(one) && values.has(other))
      throw badUsage(`--${one} and --${other} exclude each other: ${why}.`)
  }
  refuseBoth('json', 'events', 'choose one form of output')
  refuseBoth('rehearsal', 'model', 'a rehearsal calls no model')
  refuseBoth('rehearsal', 'base-url', 'a rehearsal calls no model')

  const baseURL = text('base-url')
  if (baseURL !== undefined) checkedURL(baseURL, '--base-url')
  const maxSteps = wholeNumber('--max-steps', text('max-steps'), 1)
  const timeoutMs = wholeNumber('--timeout', text('timeout'), 0)
  return {
    prompt: positionals.length === 0 ? undefined : positionals.join(' '),
    config: text('config'),
    tools: text('tools'),
    session: text('session'),
    model: text('model'),
    baseURL,
    instructions: text('instructions'),
    limits: { ...(maxSteps !== undefined && { maxSteps }), ...(timeoutMs !== undefined && { timeoutMs }) },
    stream: !values.has('no-stream'),
    output: values.has('json') ? 'json' : values.has('events') ? 'events' : 'human',
    inspect: values.has('inspect'),
    rehearsal: values.get('rehearsal') ?? false,
  }
}

/** `--rehearsal FILE.json` is `--rehearsal=FILE.json`; after `--rehearsal`, anything else is the prompt. */
function scenarioInline(args: readonly string[]): string[] {
  const at = args.indexOf('--rehearsal')
  const file = args[at + 1]
  const end = args.indexOf('--')
  const isOption = at >= 0 && (end < 0 || at < end)
  if (!isOption || file === undefined || !/^[^-\s]\S*\.json$/.test(file)) return [...args]
  return args.toSpliced(at, 2, `--rehearsal=${file}`)
}

function wholeNumber(option: string, text: string | undefined, from: number): number | undefined {
  if (text === undefined) return undefined
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN
  if (Number.isSafeInteger(value) && value >= from) return value
  throw badUsage(`${option} must be a whole number of at least ${from} (is '${text}').`, option)
}
