import { UsageError } from '../base/errors.js'
import { checkBudgets } from '../budgets/budgets-option.js'
import { findOtherName } from '../config/other-names.js'
import type { ResumeOptions, RunOptions } from './agent-options.js'

const optionNames = [
  'session',
  'tags',
  'attachments',
  'signal',
  'limits',
  'context',
  'journal',
  'budgets',
  'inspect',
] as const satisfies (keyof RunOptions)[]

const resumeOptionNames = [
  'signal',
  'context',
  'budgets',
  'inspect',
] as const satisfies (keyof ResumeOptions)[]

/** The options of `resume`, refused as those of a run are. */
export function checkResumeOptions(options: unknown): ResumeOptions {
  return checkRunOptions(options, 'resume()', resumeOptionNames)
}

/** The options of a run; a UsageError for one that does not exist (a limit beside `limits`, say) or cannot work. */
export function checkRunOptions(
  options: unknown,
  call = 'run()',
  names: readonly string[] = optionNames,
): RunOptions {
  if (options === undefined) return {}
  if (typeof options !== 'object' || options === null) {
    throw optionError(
      'The options of a run must be an object, such as { session, signal, limits, context }.',
      'options',
    )
  }
  for (const key of Object.keys(options)) {
    if (names.includes(key)) continue
    const other = findOtherName(key)
    const hint = other
      ? `Here it is ${other}.`
      : `It takes ${names.join(', ')}${names.includes('limits') ? '; limits go into limits: { … }' : ''}.`
    throw optionError(`${call} has no option '${key}'. ${hint}`, key)
  }
  const { signal, journal, budgets } = options as RunOptions
  checkBudgets(budgets)
  if (signal !== undefined && typeof signal.addEventListener !== 'function') {
    throw optionError('signal must be an AbortSignal: pass controller.signal.', 'signal')
  }
  if (
    journal !== undefined &&
    (typeof journal.append !== 'function' || typeof journal.flush !== 'function')
  ) {
    throw optionError('journal must have append(entry) and flush().', 'journal')
  }
  return options
}

function optionError(message: string, subject: string): UsageError {
  return new UsageError('invalid_option', message, subject)
}
