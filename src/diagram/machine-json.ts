import type { AnyStateMachine } from 'xstate'

/**
 * The machine's config as JSON: what Stately's editor imports, and what `createMachine` takes. Functions cannot be
 * written down: a named one is written as its name, an inline one where XState needs a name as `inline`; what else is
 * a function (initial context, input, output) is left out.
 */
export function toMachineJson(machine: AnyStateMachine): string {
  const config = plain(machine.config, '') as Record<string, unknown>
  return `${JSON.stringify({ ...config, id: machine.id }, null, 2)}\n`
}

/** Keys whose functions have a place of their own in a machine's implementations. */
const implemented = new Set(['guard', 'actions', 'entry', 'exit', 'src'])

function plain(value: unknown, key: string): unknown {
  if (typeof value === 'function') return implemented.has(key) ? { type: nameOf(value) } : undefined
  if (Array.isArray(value)) return value.map((each) => plain(each, key))
  if (typeof value !== 'object' || value === null) return value
  // Actor logic that is given in place of a name.
  if (key === 'src') return 'inline'
  const entries = Object.entries(value).map(([name, each]): [string, unknown] => [name, plain(each, name)])
  const written = entries.filter(([, each]) => each !== undefined)
  return written.length === 0 && entries.length > 0 ? undefined : Object.fromEntries(written)
}

/** Combinations are spelled out: `and(isLast, not(isOpen))`. */
function nameOf(implementation: object): string {
  const { name, guards } = implementation as { name?: string; guards?: unknown[] }
  if (guards) return `${name ?? ''}(${guards.map((each) => guardName(each)).join(', ')})`
  return name === undefined || name === '' ? 'inline' : name
}
