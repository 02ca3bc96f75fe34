import { UsageError } from '../base/errors.js'
import { findOtherName } from '../config/other-names.js'
import type { RunOptions } from './agent-options.js'

const known = [
  'session',
  'attachments',
  'signal',
  'limits',
  'context',
  'journal',
  'inspect',
] as const satisfies (keyof RunOptions)[]

/** The options of a run; a UsageError for one that does not exist (a limit beside `limits`, say) or cannot work. */
export function checkedRunOptions(options: unknown): RunOptions {
  if (options === undefined) return {}
  if (typeof options !== 'object' || options === null) {
    throw bad(
      'The options of a run must be an object, such as { session, signal, limits, context }.',
      'options',
    )
  }
  for (const key of Object.keys(options)) {
    if ((known as readonly string[]).includes(key)) continue
    const other = findOtherName(key)
    const hint = other
      ? `Here it is ${other}.`
      : `It takes ${known.join(', ')}; limits go into limits: { … }.`
    throw bad(`run() has no option '${key}'. ${hint}`, key)
  }
  const { signal, journal } = options as RunOptions
  if (signal !== undefined && typeof signal.addEventListener !== 'function') {
    throw bad('signal must be an AbortSignal: pass controller.signal.', 'signal')
  }
  if (
    journal !== undefined &&
    (typeof journal.append !== 'function' || typeof journal.flush !== 'function')
  ) {
    throw bad('journal must have append(entry) and flush().', 'journal')
  }
  return options
}

function bad(message: string, subject: string): UsageError {
  return new UsageError('invalid_option', message, subject)
}
