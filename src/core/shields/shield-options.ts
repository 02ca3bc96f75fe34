import { invalidShieldError } from './define-shield.js'

/** Refuses what is no options object, and options that there are none of. */
export function checkKeys(name: string, options: unknown, keys: readonly string[]): void {
  if (typeof options !== 'object' || options === null) {
    throw invalidShieldError(name, 'options', `the options must be an object of ${keys.join(', ')}.`)
  }
  for (const key of Object.keys(options)) {
    if (!keys.includes(key)) {
      throw invalidShieldError(name, key, `there is no option '${key}'. The options are ${keys.join(', ')}.`)
    }
  }
}

/** The chosen kinds; all, when none is named. */
export function chooseKinds<Kind extends string>(
  name: string,
  known: readonly Kind[],
  kinds: readonly Kind[] = known,
  option = 'kinds',
): readonly Kind[] {
  const isChoice =
    Array.isArray(kinds) && kinds.length > 0 && kinds.every((kind) => known.includes(kind as Kind))
  if (!isChoice) {
    throw invalidShieldError(
      name,
      option,
      `${option} must be an array of one or more of ${known.join(', ')}.`,
    )
  }
  // In our order: it goes from the specific to the general.
  return known.filter((kind) => kinds.includes(kind))
}
