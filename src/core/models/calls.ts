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

/**
 * The id of a call in the message with this number: unchanged, or with that number where an earlier message has the id.
 * Several providers count calls from `call_0` in every response. Kimi's ids end in a count, so that count changes.
 */
export function nameCall(id: string, messageNumber: number, used: ReadonlySet<string>): string {
  let name = id
  while (used.has(name)) {
    const count = /:(\d{1,9})$/.exec(name)?.[1]
    name =
      count === undefined
        ? `${name}_${messageNumber}`
        : `${name.slice(0, -count.length)}${Number(count) + messageNumber}`
  }
  return name
}
