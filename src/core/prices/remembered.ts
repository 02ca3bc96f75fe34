/** Messages and tools are never changed in place, and come again with every request: each is counted once. */
export function remembered<Item extends object>(count: (item: Item) => number): (item: Item) => number {
  const counts = new WeakMap<Item, number>()
  return (item) => {
    const known = counts.get(item)
    if (known !== undefined) return known
    const tokens = count(item)
    counts.set(item, tokens)
    return tokens
  }
}

export function sum<Item>(items: readonly Item[], tokens: (item: Item) => number): number {
  return items.reduce((total, item) => total + tokens(item), 0)
}
