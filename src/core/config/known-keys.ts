import { anyKey, type Kind, type Path } from './kind.js'

/** The keys that the kind knows inside the object at this path. */
export function keysAt(kind: Kind, path: Path): string[] {
  const there = path.reduce<Kind[]>(
    (kinds, key) =>
      kinds
        .flatMap(({ keys }) => keys)
        .filter(([name]) => name === key || name === anyKey)
        .map(([, inner]) => inner),
    [kind],
  )
  return there.flatMap(({ keys }) => keys.map(([name]) => name)).filter((name) => name !== anyKey)
}

/** The dotted path of every key that the kind knows, parents first. */
export function keyPaths({ keys }: Kind): string[] {
  return keys.flatMap(([name, inner]) =>
    name === anyKey ? [] : [name, ...keyPaths(inner).map((path) => `${name}.${path}`)],
  )
}
