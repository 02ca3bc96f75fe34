import { maxTimerMs } from '../base/clock.js'
import { ConfigError } from '../base/errors.js'

type Kind = 'guard' | 'shield' | 'tool'

const capitalized = { guard: 'Guard', shield: 'Shield', tool: 'Tool' } as const

export const timeoutRule = `must be a number of milliseconds from 1 to ${maxTimerMs}.`

export const isTimeout = (value: unknown): value is number =>
  typeof value === 'number' && value >= 1 && value <= maxTimerMs

/** For JavaScript and casts. Returns the fields of a definition with a valid name, and a function that refuses one. */
export function readDefinition(
  kind: Kind,
  definition: unknown,
  keys: string,
): {
  fields: Record<string, unknown>
  refuse: (key: string, problem: string) => never
} {
  const fail = (message: string, subject?: string): never => {
    throw new ConfigError(`invalid_${kind}`, message, subject)
  }
  if (typeof definition !== 'object' || definition === null)
    return fail(`define${capitalized[kind]} takes an object: { ${keys} }.`)
  const fields = definition as Record<string, unknown>
  const { name } = fields
  const [pattern, marks] =
    kind === 'tool'
      ? [/^[a-zA-Z0-9_-]{1,64}$/, "'_' and '-'"]
      : [/^[a-zA-Z0-9_.-]{1,64}$/, "'_', '-' and '.'"]
  if (typeof name !== 'string' || !pattern.test(name) || name === '__proto__') {
    const shown = typeof name === 'string' ? `'${name.slice(0, 80)}'` : `a value of type ${typeof name}`
    return fail(`A ${kind} cannot be named ${shown}: use 1 to 64 letters, digits, ${marks}.`, 'name')
  }
  const refuse = (key: string, problem: string): never =>
    fail(`${capitalized[kind]} '${name}': ${problem}`, `${name}.${key}`)
  return { fields, refuse }
}

/** Defines all items of a list, whose names must differ. Items that were not created by `define` get the same checks. */
export function defineAll<Item extends { name: string }>(
  kind: Kind,
  place: string,
  items: readonly Item[],
  define: (item: Item) => Item,
  duplicateError: (name: string) => ConfigError,
): Item[] {
  const names = new Set<string>()
  // Array.from includes holes.
  return Array.from(items, (entry: Item | null | undefined, index) => {
    if (typeof entry !== 'object' || entry === null) {
      const where = `${place}[${index}]`
      const how = `Create it with define${capitalized[kind]}({ … }).`
      throw new ConfigError(`invalid_${kind}`, `${where} is not a ${kind}. ${how}`, where)
    }
    const item = define(entry)
    if (names.has(item.name)) throw duplicateError(item.name)
    names.add(item.name)
    return item
  })
}
