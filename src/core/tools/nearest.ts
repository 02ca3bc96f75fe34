import { editDistance } from '../base/edit-distance.js'

/** Characters of a name that are compared: no tool's name is longer. */
const longest = 64

/** `names`, the most similar to `wanted` first, ties in their own order. Letter case does not matter. */
export function nearestFirst(wanted: string, names: readonly string[]): string[] {
  const goal = wanted.slice(0, longest).toLowerCase()
  return names
    .map((name) => ({ name, edits: editDistance(goal, name.toLowerCase()) }))
    .sort((a, b) => a.edits - b.edits)
    .map(({ name }) => name)
}
