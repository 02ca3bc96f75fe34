import type { JsonObject } from '../../../../../machines/agent/json.js'
import { asText } from '../../../base/values.js'
import { readItemArguments, isApprovalRequest } from './response-calls.js'
import type { StreamedItem } from './output-items.js'
import { readWords } from './kept-items.js'

/** An answer's items, and the calls of the stream that are not among them. */
export interface Reconciliation {
  items: JsonObject[]
  /** Calls that never ended, and that the list does not know: they are not made. */
  dropped: JsonObject[]
}

/**
 * The list of items that ends an answer, and the items that were streamed, as one. The list is believed in what it says; what
 * it leaves out was said and paid for all the same: an item that has ended, words as far as they came. A call that never
 * ended is not known to be whole.
 */
export function reconcileItems(
  listed: readonly JsonObject[],
  streamed: readonly StreamedItem[],
): Reconciliation {
  const known = pairItems(listed, streamed)
  const items = listed.map((item) => {
    const said = known.get(item)
    return said !== undefined && !hasContent(item) && hasContent(said.item) ? said.item : item
  })
  const places = listed.map((item) => known.get(item)?.at ?? null)
  const dropped: JsonObject[] = []
  const paired = new Set(known.values())
  for (const one of streamed) {
    if (paired.has(one)) continue
    if (!one.isDone) {
      if (isCall(one.item)) dropped.push(one.item)
      if (one.item.type !== 'message' || !hasContent(one.item)) continue
    }
    const after = places.findIndex((place) => place !== null && place > one.at)
    const at = after < 0 ? items.length : after
    items.splice(at, 0, one.item)
    places.splice(at, 0, one.at)
  }
  return { items, dropped }
}

/** Which streamed item each listed one is: the same by what it can be known by, else the next of its kind. */
function pairItems(
  listed: readonly JsonObject[],
  streamed: readonly StreamedItem[],
): Map<JsonObject, StreamedItem> {
  const known = new Map<JsonObject, StreamedItem>()
  const free = new Set(streamed)
  for (const isSame of [isSameItem, (a: JsonObject, b: JsonObject) => a.type === b.type]) {
    for (const item of listed) {
      const match = known.has(item) ? undefined : [...free].find((one) => isSame(item, one.item))
      if (match === undefined) continue
      known.set(item, match)
      free.delete(match)
    }
  }
  return known
}

function isSameItem(a: JsonObject, b: JsonObject): boolean {
  if (a.type !== b.type) return false
  if (a.type === 'function_call') return asText(a.call_id) !== '' && a.call_id === b.call_id
  return (
    (asText(a.id) !== '' && a.id === b.id) ||
    (a.type === 'message' && readText(a) !== '' && readText(a) === readText(b))
  )
}

function isCall(item: JsonObject): boolean {
  return item.type === 'function_call' || isApprovalRequest(item)
}

function hasContent(item: JsonObject): boolean {
  if (isCall(item)) return readItemArguments(item).trim() !== ''
  return item.type !== 'message' || readText(item) !== ''
}

function readText(item: JsonObject): string {
  return readWords(item, 'text') + readWords(item, 'refusal')
}
