/** A call as a provider sends it. */
export interface SentCall {
  id: string
  name: string
  /** JSON text; blank when no arguments came. */
  arguments: string
}

/**
 * Leaves out what is not a call of its own: a start without arguments when a call of the same tool follows with arguments, and
 * a call that was sent again under its id. `read` returns null for other items, which stay.
 */
export function listDistinctCalls<Item>(
  items: readonly Item[],
  read: (item: Item) => SentCall | null,
): Item[] {
  const calls = items.map(read)
  /** The last call of each tool that has arguments. */
  const lastWritten = new Map<string, number>()
  for (const [i, call] of calls.entries()) if (call && !isBlank(call)) lastWritten.set(call.name, i)
  const seen = new Set<string>()
  return items.filter((_, i) => {
    const call = calls[i]
    if (!call) return true
    if (isBlank(call) && (lastWritten.get(call.name) ?? -1) > i) return false
    if (call.id === '') return true
    const key = JSON.stringify([call.id, call.name, call.arguments.trim()])
    return seen.size < seen.add(key).size
  })
}

const isBlank = ({ arguments: text }: SentCall): boolean => text.trim() === ''
