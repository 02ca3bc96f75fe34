import { type Chart, flattenStates } from './chart.js'
import { StatewrightError } from '../core/base/errors.js'

/**
 * A diagram that cannot be drawn.
 *
 * - `bad_coverage`: the value is not a `Coverage` of this machine
 * - `unknown_state`: `subject` is no state of the machine, or one that nothing is nested in
 * - `layout_failed`: Graphviz refused; the message is its own
 *
 * @example
 * try {
 *   toDot(toChart(agentMachine), { state: 'RUNING' })
 * } catch (error) {
 *   if (error instanceof DiagramError) console.log(error.code, error.message) // → unknown_state …
 * }
 */
export class DiagramError extends StatewrightError {
  override readonly name = 'DiagramError'
}

export function unknownStateError(state: string, chart: Chart): DiagramError {
  const names = flattenStates(chart.root).filter(({ id, states }) => id !== '(root)' && states.length > 0)
  return new DiagramError(
    'unknown_state',
    `'${state}' is no state with nested states. ${names.length === 0 ? 'This machine has none.' : `There are: ${names.map(({ id }) => id).join(', ')}.`}`,
    state,
  )
}
