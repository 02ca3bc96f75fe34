import { type OptionSpecs, parseOptions, parseWholeNumber } from '../parse-options.js'
import {
  agentOptionSpecs,
  type CommonOptions,
  drainOptionSpec,
  outputOptionSpecs,
  readCommonOptions,
  inlineScenario,
  storeOptionSpec,
} from './common-options.js'

export const runOptionSpecs = {
  ...agentOptionSpecs,
  session: { value: 'ID', about: 'continue or begin this session (default: a new one)' },
  ...storeOptionSpec,
  'max-steps': { value: 'N', about: 'stop after this number of model responses (limits.maxSteps)' },
  timeout: { value: 'MS', about: 'stop after this number of milliseconds; 0 is off (limits.timeoutMs)' },
  'no-stream': { about: 'ask for whole responses instead of streamed ones' },
  studio: { about: 'watch the run in the studio, a page on this machine, until Ctrl-C' },
  ...drainOptionSpec,
  ...outputOptionSpecs,
} satisfies OptionSpecs

export interface RunCommandOptions extends CommonOptions {
  /** Undefined: not given. `-`: stdin. */
  prompt: string | undefined
  session: string | undefined
  limits: { maxSteps?: number; timeoutMs?: number }
  stream: boolean
  studio: boolean
}

/** Reads the arguments of `statewright run`. Throws a CliError for invalid or contradictory ones. */
export function readRunOptions(args: readonly string[]): RunCommandOptions {
  const given = parseOptions(inlineScenario(args), runOptionSpecs)
  const { positionals, text, has } = given
  const maxSteps = parseWholeNumber('--max-steps', text('max-steps'), 1)
  const timeoutMs = parseWholeNumber('--timeout', text('timeout'), 0)
  return {
    ...readCommonOptions(given),
    prompt: positionals.length === 0 ? undefined : positionals.join(' '),
    session: text('session'),
    limits: { ...(maxSteps !== undefined && { maxSteps }), ...(timeoutMs !== undefined && { timeoutMs }) },
    stream: !has('no-stream'),
    studio: has('studio'),
  }
}
