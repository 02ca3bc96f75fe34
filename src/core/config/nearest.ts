import { editDistance } from '../base/edit-distance.js'

/** The candidate that a mistyped name was probably meant to be; undefined when none is close. */
export function nearest(name: string, candidates: readonly string[]): string | undefined {
  const wanted = plain(name)
  // Longer input is no typo of a key, and comparing it would cost its length times the key's.
  if (wanted === '' || wanted.length > 64) return undefined
  const tolerance = Math.max(1, Math.floor(wanted.length / 3))
  let best: string | undefined
  let shortest = tolerance + 1
  for (const candidate of candidates) {
    const distance = isBeginning(wanted, plain(candidate)) ? 1 : editDistance(wanted, plain(candidate))
    if (distance < shortest) [best, shortest] = [candidate, distance]
  }
  return best
}

/** `max_steps`, `max-steps` and `MaxSteps` are all meant to be `maxSteps`. */
function plain(name: string): string {
  return name.replaceAll(/[_\-\s]/g, '').toLowerCase()
}

/** `timeout` is meant to be `timeoutMs`. */
function isBeginning(wanted: string, candidate: string): boolean {
  return wanted.length >= 4 && wanted !== candidate && candidate.startsWith(wanted)
}
