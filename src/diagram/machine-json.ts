import { expectArgument, objectRule } from '../core/base/expect-argument.js'
import type { AnyStateMachine } from 'xstate'
import { getGuardName } from '../core/chart/transitions.js'
import { getImplementationName } from './chart.js'

/**
 * The machine's config as JSON: what Stately's editor imports, and what `createMachine` takes. Functions cannot be
 * written down: a named one is written as its name, an inline one where XState needs a name as `inline`; what else is
 * a function (initial context, input, output) is left out.
 *
 * @example await writeFile('machine.json', toMachineJson(machine))
 */
export function toMachineJson(machine: AnyStateMachine): string {
  expectArgument(
    'toMachineJson(machine)',
    machine,
    objectRule(['root', 'config'], 'an XState machine, such as agent.machine'),
  )
  const config = toPlainJson(machine.config, '') as Record<string, unknown>
  return `${JSON.stringify({ ...config, id: machine.id }, null, 2)}\n`
}

/**
 * A whole file to paste into Stately's editors: the same config in `createMachine`, which they look for. It runs, too, with
 * the names of its actions, guards and actors, and nothing behind them.
 *
 * @example await writeFile('machine.stately.js', toStately(machine))
 */
export function toStately(machine: AnyStateMachine): string {
  expectArgument(
    'toStately(machine)',
    machine,
    objectRule(['root', 'config'], 'an XState machine, such as agent.machine'),
  )
  return `import { createMachine } from 'xstate'\n\nexport const machine = createMachine(${toMachineJson(machine).trimEnd()})\n`
}

/** Keys whose functions have a place of their own in a machine's implementations. */
const implementationNames: Readonly<Record<string, (implementation: unknown) => unknown>> = {
  guard: (guard) => ({ type: getGuardName(guard) }),
  actions: (action) => ({ type: getImplementationName(action) }),
  entry: (action) => ({ type: getImplementationName(action) }),
  exit: (action) => ({ type: getImplementationName(action) }),
  src: getImplementationName,
}

function toPlainJson(value: unknown, key: string): unknown {
  if (typeof value === 'function') return implementationNames[key]?.(value)
  if (Array.isArray(value)) return value.map((each) => toPlainJson(each, key))
  if (typeof value !== 'object' || value === null) return value
  // Actor logic that is given in place of a name.
  if (key === 'src') return getImplementationName(value)
  const entries = Object.entries(value).map(([name, each]): [string, unknown] => [
    name,
    toPlainJson(each, name),
  ])
  const written = entries.filter(([, each]) => each !== undefined)
  return Object.fromEntries(written)
}
