/** Characters of a name that are compared: no tool's name is longer. */
const longest = 64

/** `names`, the most similar to `wanted` first, ties in their own order. Letter case does not matter. */
export function nearestFirst(wanted: string, names: readonly string[]): string[] {
  const goal = wanted.slice(0, longest).toLowerCase()
  return names
    .map((name) => ({ name, edits: countEdits(goal, name.toLowerCase()) }))
    .sort((a, b) => a.edits - b.edits)
    .map(({ name }) => name)
}

/** Levenshtein's distance: insertions, deletions and replacements that turn one text into the other. */
function countEdits(from: string, to: string): number {
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
