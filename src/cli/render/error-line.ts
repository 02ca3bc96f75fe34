import type { RunResult } from '../../../machines/agent/outcome.js'
import type { Paint } from '../../core/format/paint.js'
import { printable } from '../../core/format/words.js'

/** Why a run ended as it did, as a line; empty when there is nothing to say. */
export function errorLine({ error }: Pick<RunResult, 'error'>, paint: Paint): string {
  return error === undefined
    ? ''
    : `${paint('red', `✗ ${printable(error.code)}`)}  ${printable(error.message)}\n`
}
