import type { Json } from '../../../machines/agent/json.js'
import type { HostedCall } from './provider.js'

export interface SentCall {
  id: string
  name: string
  /** JSON text; blank if the call has no arguments. */
  arguments: string
}

/** Drops calls resent under the same id, and blank calls before one to the same tool with arguments. */
export function listDistinctCalls<Item>(all: readonly Item[], read: (item: Item) => SentCall | null): Item[] {
  const calls = all.map(read)
  const lastWritten = new Map<string, number>()
  for (const [i, call] of calls.entries()) if (call && !isBlank(call)) lastWritten.set(call.name, i)
  const seen = new Set<string>()
  return all.filter((_, i) => {
    const call = calls[i]
    if (!call) return true
    if (isBlank(call) && (lastWritten.get(call.name) ?? -1) > i) return false
    if (call.id === '') return true
    const key = JSON.stringify([call.id, call.name, call.arguments.trim()])
    return seen.size < seen.add(key).size
  })
}

const isBlank = ({ arguments: text }: SentCall): boolean => text.trim() === ''

/** Several providers count from `call_0` in every response. Kimi ids end in a counter, which is increased. */
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

/** Some providers send `{}` or `null` before the actual arguments. */
export const isPlaceholder = (text: string): boolean => ['', '{}', 'null'].includes(text.trim())

/** Removes a `{}` that precedes the actual arguments. */
export function withoutPlaceholder(text: string): string {
  const rest = text.startsWith('{}') ? text.slice(2).trimStart() : ''
  return rest.startsWith('{') ? rest : text
}

/** Reports each call of a provider's own tool once when it starts and once when it ends. */
export function createHostedCallTracker() {
  const calls = new Map<string, Pick<HostedCall, 'id' | 'name'> & { hasEnded: boolean }>()

  /** `getItem` returns the item of a call that has ended. */
  return (key: string, id: string, name: string, getItem?: (name: string) => Json): HostedCall[] => {
    const known = calls.get(key)
    const call = { id: known?.id ?? id, name: known?.name ?? name }
    if (call.name === '' || known?.hasEnded) return []
    calls.set(key, { ...call, hasEnded: getItem !== undefined })
    return [
      ...(known ? [] : [{ ...call, item: null }]),
      ...(getItem ? [{ ...call, item: getItem(call.name) }] : []),
    ]
  }
}
