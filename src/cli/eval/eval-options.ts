import type { SessionTags } from '../../core/sessions/store/session-tags.js'
import { badUsageError } from '../cli-error.js'
import { storeOptionSpec } from '../commands/common-options.js'
import { type OptionSpecs, parseOptions, parseTag, parseWholeNumber } from '../parse-options.js'

export const evalOptionSpecs = {
  agent: {
    value: 'MODULE',
    about: 'a module whose default export is an agent, or a function of { store } that returns one',
  },
  score: {
    value: 'MODULE',
    about: 'a module that exports score: a scorer, or several by name (default: a run that completes has 1)',
  },
  against: { value: 'FILE', about: 'compare with this report: what --out has written before' },
  repeat: { value: 'N', about: 'run each case so often (default: 1)' },
  concurrency: { value: 'N', about: 'how many cases run at once (default: 4)' },
  out: { short: 'o', value: 'FILE', about: 'write the report as JSON' },
  html: { value: 'FILE', about: 'write the report as one page with plots' },
  json: { about: 'print the report as one line of JSON, in place of the table' },
  'fail-below': { value: 'N', about: 'exit with 1 if the mean score is below this number from 0 to 1' },
  'max-regression': {
    value: 'N',
    about: 'with --against: exit with 1 if the mean score has fallen by more than this number',
  },
  'pass-at': { value: 'N', about: 'the score from which a case passes (default: 0.5)' },
  seed: { value: 'N', about: 'of the bootstrap (default: 1)' },
  'from-store': { about: 'replay the sessions of the store in place of cases' },
  last: { value: 'N', about: 'with --from-store: how many sessions, the last written first (default: 100)' },
  tag: { value: 'NAME=VALUE', about: 'with --from-store: only sessions with this tag; may be repeated' },
  prefix: { value: 'TEXT', about: 'with --from-store: only sessions whose ids begin with it and a colon' },
  id: { value: 'NAME', about: 'of the evaluation: its sessions are NAME.CASE.1 (default: a new one)' },
  ...storeOptionSpec,
  help: { short: 'h', about: 'show this help' },
} satisfies OptionSpecs

export interface EvalOptions {
  /** Undefined: sessions of `source` are replayed. */
  cases: string | undefined
  source: { last: number; prefix: string | undefined; tags: SessionTags } | undefined
  agent: string
  score: string | undefined
  against: string | undefined
  repeat: number
  concurrency: number
  out: string | undefined
  html: string | undefined
  json: boolean
  failBelow: number | undefined
  maxRegression: number | undefined
  passAt: number | undefined
  seed: number | undefined
  id: string | undefined
  store: string | undefined
}

/** Reads the arguments of `statewright eval`. Throws a CliError for invalid or contradictory ones. */
export function readEvalOptions(args: readonly string[]): EvalOptions {
  const { positionals, text, has, all } = parseOptions(args, evalOptionSpecs)
  const [cases, ...more] = positionals
  const isReplay = has('from-store')
  if (more.length > 0)
    throw badUsageError(`One CASES at a time: '${more.join("', '")}' is too much.`, 'CASES')
  if (cases === undefined && !isReplay)
    throw badUsageError(
      'Name a file of lines { "id", "input", "expected"? }, CASES.jsonl, or replay sessions: --from-store.',
      'CASES',
    )
  if (cases !== undefined && isReplay)
    throw badUsageError(`Give either --from-store or cases, not both ('${cases}').`, '--from-store')
  for (const name of ['last', 'tag', 'prefix'] as const) {
    if (has(name) && !isReplay)
      throw badUsageError(`--${name} chooses sessions to replay: give --from-store with it.`, `--${name}`)
  }
  const agent = text('agent')
  if (agent === undefined)
    throw badUsageError('Name the module of the agent: --agent ./agent.mjs.', '--agent')
  const against = text('against')
  const maxRegression = parseShare('--max-regression', text('max-regression'))
  if (maxRegression !== undefined && against === undefined)
    throw badUsageError('--max-regression compares with a report: give --against FILE.', '--max-regression')
  return {
    cases,
    source: isReplay
      ? {
          last: parseWholeNumber('--last', text('last'), 1) ?? 100,
          prefix: text('prefix'),
          tags: Object.fromEntries(all('tag').map(parseTag)),
        }
      : undefined,
    agent,
    score: text('score'),
    against,
    repeat: parseWholeNumber('--repeat', text('repeat'), 1) ?? 1,
    concurrency: parseWholeNumber('--concurrency', text('concurrency'), 1) ?? 4,
    out: text('out'),
    html: text('html'),
    json: has('json'),
    failBelow: parseShare('--fail-below', text('fail-below')),
    maxRegression,
    passAt: parseShare('--pass-at', text('pass-at')),
    seed: parseWholeNumber('--seed', text('seed'), 0),
    id: text('id'),
    store: text('store'),
  }
}

function parseShare(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const value = /^\d*\.?\d+$/.test(text) ? Number(text) : Number.NaN
  if (value >= 0 && value <= 1) return value
  throw badUsageError(`${option} must be a number from 0 to 1 (is '${text}').`, option)
}
