import { ConfigError } from '../base/errors.js'
import { defineGuard } from './define-guard.js'
import type { UserGuard } from './guard.js'

/**
 * The guards of an agent, checked. Throws a ConfigError: `duplicate_guard` when two have one name, `invalid_guard` for
 * what is none.
 */
export function checkGuards(guards: readonly UserGuard[]): readonly UserGuard[] {
  if (!Array.isArray(guards)) throw new ConfigError('invalid_guard', 'guards must be an array.', 'guards')
  const names = new Set<string>()
  return guards.map((entry: UserGuard, index) => {
    if (typeof entry !== 'object' || entry === null) {
      const place = `guards[${index}]`
      throw new ConfigError(
        'invalid_guard',
        `${place} is not a guard. Make it with defineGuard({ … }).`,
        place,
      )
    }
    // A definition without defineGuard gets the same checks.
    const guard = defineGuard(entry)
    if (names.has(guard.name)) {
      throw new ConfigError(
        'duplicate_guard',
        `Two guards are named '${guard.name}'. Rename one: what a guard remembers is stored under its name.`,
        guard.name,
      )
    }
    names.add(guard.name)
    return guard
  })
}
