/** Names of the declarations that differ between two reports of an entry: + added, - removed, ~ changed. */
export function listChangedBlocks(before, after) {
  if (before === undefined) return ['a new entry']
  if (after === undefined) return ['the entry is gone']
  const [old, now] = [readBlocks(before), readBlocks(after)]
  const names = [...new Set([...old.keys(), ...now.keys()])].filter((name) => old.get(name) !== now.get(name))
  return names
    .toSorted((a, b) => (a < b ? -1 : 1))
    .map((name) => {
      if (!old.has(name)) return `+ ${name}`
      return now.has(name) ? `~ ${name}` : `- ${name}`
    })
}

function readBlocks(report) {
  const blocks = new Map()
  for (const [, code] of report.matchAll(/```ts\n([\s\S]*?)\n```/g)) {
    for (const block of code.split('\n\n')) {
      const [, name = block] = /^(?:abstract )?(?:export \{ )?(?:\w+ )?([\w$]+)(?=[^\w$])/.exec(block) ?? []
      blocks.set(name, [blocks.get(name), block].filter(Boolean).join('\n\n'))
    }
  }
  return blocks
}
