/** The candidate that a mistyped name was probably meant to be; undefined when none is close. */
export function findNearestName(name: string, candidates: readonly string[]): string | undefined {
  const wanted = normalizeName(name)
  // Longer input is no typo of a key, and comparing it would cost its length times the key's.
  if (wanted === '' || wanted.length > 64) return undefined
  const tolerance = Math.max(1, Math.floor(wanted.length / 3))
  let best: string | undefined
  let shortest = tolerance + 1
  for (const candidate of candidates) {
    const distance = isPrefix(wanted, normalizeName(candidate))
      ? 1
      : editDistance(wanted, normalizeName(candidate))
    if (distance < shortest) [best, shortest] = [candidate, distance]
  }
  return best
}

/** Makes one spelling of `max_steps`, `max-steps` and `MaxSteps`. */
export function normalizeName(name: string): string {
  return name.replaceAll(/[_\-\s]/g, '').toLowerCase()
}

/** `timeout` is meant to be `timeoutMs`. */
function isPrefix(wanted: string, candidate: string): boolean {
  return wanted.length >= 4 && wanted !== candidate && candidate.startsWith(wanted)
}

/** Characters of a name that are compared: no tool's name is longer. */
const maxComparedChars = 64

/** `names`, the most similar to `wanted` first, ties in their own order. Letter case does not matter. */
export function sortByNearness(wanted: string, names: readonly string[]): string[] {
  const goal = wanted.slice(0, maxComparedChars).toLowerCase()
  return names
    .map((name) => ({ name, edits: editDistance(goal, name.toLowerCase()) }))
    .sort((a, b) => a.edits - b.edits)
    .map(({ name }) => name)
}

/** Levenshtein's distance: insertions, deletions and replacements that turn one text into the other. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (let i = 1; i <= from.length; i += 1) {
    const next = [i]
    for (let j = 1; j <= to.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1)
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row.at(-1) ?? 0
}
