import type { RunResult } from '../../../machines/agent/run-result.js'
import { type Paint, stripControls } from '../../core/format/format-words.js'

export { type Paint, createPaint, type Style } from '../../core/format/format-words.js'

/** Whether a stream gets colours, by FORCE_COLOR, else NO_COLOR, else whether it is a terminal. */
export function wantsColor(
  stream: { isTTY?: boolean },
  env: Readonly<Record<string, string | undefined>>,
): boolean {
  const forced = env.FORCE_COLOR
  if (forced !== undefined) return forced !== '0' && forced !== 'false'
  if (env.NO_COLOR) return false
  return stream.isTTY === true && env.TERM !== 'dumb'
}

/** The error of a run as a line; empty without one. */
export function formatErrorLine({ error }: Pick<RunResult, 'error'>, paint: Paint): string {
  return error === undefined
    ? ''
    : `${paint('red', `✗ ${stripControls(error.code)}`)}  ${stripControls(error.message)}\n`
}
