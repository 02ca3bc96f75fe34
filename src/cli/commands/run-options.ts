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
  session: { value: 'ID', about: 'go on with this session, or begin it (default: a new one)' },
  ...storeOptionSpec,
  'max-steps': { value: 'N', about: 'stop after so many model responses (limits.maxSteps)' },
  timeout: { value: 'MS', about: 'stop after so many milliseconds; 0 is off (limits.timeoutMs)' },
  'no-stream': { about: 'ask for whole responses instead of streamed ones' },
  studio: { about: 'watch the run in the studio, a page on this machine, until Ctrl-C' },
  ...drainOptionSpec,
  ...outputOptionSpecs,
} satisfies OptionSpecs

export interface RunCommandOptions extends CommonOptions {
  /** Undefined: none was given. `-` is stdin. */
  prompt: string | undefined
  session: string | undefined
  limits: { maxSteps?: number; timeoutMs?: number }
  stream: boolean
  studio: boolean
}

/** What `statewright run` was asked to do. Throws a CliError for what contradicts itself or makes no sense. */
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
