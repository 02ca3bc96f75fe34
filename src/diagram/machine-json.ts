import type { AnyStateMachine } from 'xstate'
import { guardName } from '../core/chart/transitions.js'
import { nameOf } from './chart.js'

/**
 * The machine's config as JSON: what Stately's editor imports, and what `createMachine` takes. Functions cannot be
 * written down: a named one is written as its name, an inline one where XState needs a name as `inline`; what else is
 * a function (initial context, input, output) is left out.
 *
 * @example await writeFile('machine.json', toMachineJson(machine))
 */
export function toMachineJson(machine: AnyStateMachine): string {
  const config = plain(machine.config, '') as Record<string, unknown>
  return `${JSON.stringify({ ...config, id: machine.id }, null, 2)}\n`
}

/** Keys whose functions have a place of their own in a machine's implementations. */
const named: Readonly<Record<string, (implementation: unknown) => unknown>> = {
  guard: (guard) => ({ type: guardName(guard) }),
  actions: (action) => ({ type: nameOf(action) }),
  entry: (action) => ({ type: nameOf(action) }),
  exit: (action) => ({ type: nameOf(action) }),
  src: nameOf,
}

function plain(value: unknown, key: string): unknown {
  if (typeof value === 'function') return named[key]?.(value)
  if (Array.isArray(value)) return value.map((each) => plain(each, key))
  if (typeof value !== 'object' || value === null) return value
  // Actor logic that is given in place of a name.
  if (key === 'src') return nameOf(value)
  const entries = Object.entries(value).map(([name, each]): [string, unknown] => [name, plain(each, name)])
  const written = entries.filter(([, each]) => each !== undefined)
  return Object.fromEntries(written)
}
