import { UsageError } from '../core/base/errors.js'
import { findNearestName } from '../core/base/text.js'
import { readConversation, type RunInput } from '../core/sessions/input-history.js'
import { isSessionId } from '../core/sessions/store/session-id.js'
import { findTagsFault, type SessionTags } from '../core/sessions/store/session-tags.js'

/**
 * One piece of work of a batch. It may have more keys, which come back with its result.
 *
 * @example const item: BatchItem = { id: 'q1', input: 'Summarise the report on May.', tags: { team: 'sales' } }
 */
export interface BatchItem {
  /** Unique in the batch: letters (A-Z, a-z), digits and `. _ : @ -`. */
  id: string
  /** As in `agent.run`. */
  input: RunInput
  /** As in `agent.run`: what the session is found by. Needs an agent with a store. */
  tags?: SessionTags
}

const batchIdPattern = /^[A-Za-z0-9_:@][A-Za-z0-9_:@-]{0,99}$/

/** What is wrong with the id of a batch, as the end of a sentence; null: nothing is. */
export function findBatchIdFault(id: unknown): string | null {
  if (typeof id === 'string' && batchIdPattern.test(id)) return null
  const shown = typeof id === 'string' ? JSON.stringify(id.slice(0, 60)) : describeType(id)
  return `must be 1 to 100 letters (A-Z, a-z), digits and _ : @ -, without a dot and not beginning with a dash (is ${shown})`
}

/** The session of an item: `BATCH.ITEM`. The id of a batch has no dot, so that two batches never share a session. */
export function getBatchSessionId(batch: string, item: string): string {
  return `${batch}.${item}`
}

/** What is wrong with an item, as a sentence about it; null: nothing is. */
export function findItemFault(batch: string, item: unknown): string | null {
  if (typeof item !== 'object' || item === null || Array.isArray(item))
    return `is ${describeType(item)}: an item is { "id", "input", "tags"? }.`
  const { id, input, tags } = item as Partial<Record<keyof BatchItem, unknown>>
  if (id === undefined) return describeMissing('id', item)
  if (typeof id !== 'string') return `has an id that is ${describeType(id)}: an id is a text, such as "q1".`
  if (!isSessionId(getBatchSessionId(batch, id)) || id === '')
    return (
      `has the id ${JSON.stringify(id.slice(0, 60))}: use letters (A-Z, a-z), digits and . _ : @ -, ` +
      `at most ${199 - batch.length} of them.`
    )
  if (input === undefined) return describeMissing('input', item)
  const tagsFault = tags === undefined ? null : findTagsFault(tags)
  if (tagsFault !== null) return `has tags that cannot be used: tags ${tagsFault}.`
  try {
    readConversation(input, 0)
    return null
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    return `has an input that cannot be used: ${error.message}`
  }
}

function describeMissing(key: string, item: object): string {
  const meant = findNearestName(key, Object.keys(item))
  return meant === undefined ? `has no ${key}.` : `has no ${key}, but '${meant}': call it ${key}.`
}

function describeType(value: unknown): string {
  if (value === undefined) return 'missing'
  if (value === null) return 'null'
  return Array.isArray(value) ? 'a list' : typeof value === 'object' ? 'an object' : `a ${typeof value}`
}
