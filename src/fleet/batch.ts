import type { BudgetsOption } from '../core/budgets/shared-budget.js'
import { UsageError } from '../core/base/errors.js'
import { findNearestName } from '../core/base/text.js'
import { type RunInput, readConversation } from '../core/sessions/input-history.js'
import { isSessionId } from '../core/sessions/store/session-id.js'
import { type SessionTags, findTagsFault } from '../core/sessions/store/session-tags.js'

/**
 * One item of a batch. Additional keys are returned with its result.
 *
 * @example const item: BatchItem = { id: 'q1', input: 'Summarise the report on May.', tags: { team: 'sales' } }
 */
export interface BatchItem {
  /** The id of the item, which is unique in the batch. Allowed are letters (A-Z, a-z), digits and `. _ : @ -`. */
  id: string
  /** See `agent.run`. */
  input: RunInput
  /** Tags of the session, as in `agent.run`. Needs an agent with a store. */
  tags?: SessionTags
}

const batchIdPattern = /^[A-Za-z0-9_:@][A-Za-z0-9_:@-]{0,99}$/

/** Why a batch id is invalid, phrased to complete a sentence. Null if it is valid. */
export function findBatchIdFault(id: unknown): string | null {
  if (typeof id === 'string' && batchIdPattern.test(id)) return null
  const shown =
    typeof id === 'string' ? JSON.stringify(id.slice(0, 60)) : id === undefined ? 'nothing' : describeType(id)
  return `must consist of 1 to 100 letters (A-Z, a-z), digits and _ : @ -, without dots, and must not start with a dash (got ${shown})`
}

/** The session of an item: `BATCH.ITEM`. Batch ids contain no dot, so two batches never share a session. */
export const getBatchSessionId = (batch: string, item: string): string => `${batch}.${item}`

/** Why an item is invalid, as a sentence. Null if it is valid. */
export function findItemFault(batch: string, item: unknown): string | null {
  if (typeof item !== 'object' || item === null || Array.isArray(item))
    return `is ${describeType(item)}. An item must be { "id", "input", "tags"? }.`
  const { id, input, tags } = item as Partial<Record<keyof BatchItem, unknown>>
  if (id === undefined) return describeMissing('id', item)
  if (typeof id !== 'string')
    return `has an id that is ${describeType(id)}. An id must be a string, such as "q1".`
  if (!isSessionId(getBatchSessionId(batch, id)) || id === '')
    return (
      `has the id ${JSON.stringify(id.slice(0, 60))}. Use letters (A-Z, a-z), digits and . _ : @ -, ` +
      `at most ${199 - batch.length} of them.`
    )
  if (input === undefined) return describeMissing('input', item)
  const tagsFault = tags === undefined ? null : findTagsFault(tags)
  if (tagsFault !== null) return `has invalid tags: tags ${tagsFault}.`
  try {
    readConversation(input, 0)
    return null
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    return `has an invalid input: ${error.message}`
  }
}

function describeMissing(key: string, item: object): string {
  const nearest = findNearestName(key, Object.keys(item))
  return nearest === undefined ? `has no ${key}.` : `has '${nearest}' instead of ${key}. Rename it to ${key}.`
}

function describeType(value: unknown): string {
  if (value === undefined) return 'missing'
  if (value === null) return 'null'
  return Array.isArray(value) ? 'a list' : typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

/** Progress of a batch. */
export interface BatchProgress {
  /** The number of items, or null while it is unknown. */
  total: number | null
  /** COMPLETED items. */
  done: number
  /** Running items. */
  running: number
  /** Items that wait for an answer, a shared budget, or another process that holds their session. */
  waiting: number
  /** Items that ended in another state. */
  failed: number
  /** Cost of all settled items in USD, or null if one is unknown. */
  cost: number | null
  /** The remaining time in milliseconds, estimated from the items of this call. Null while it is unknown. */
  timeLeftMs: number | null
}

/** Options for `runAll`. */
export interface RunAllOptions {
  /**
   * Name of the batch: 1 to 100 letters, digits and `_ : @ -`. The session of an item is `ID.ITEM`. Starting the same
   * batch again on the same store continues it.
   */
  id: string
  /** Maximum number of items that run at once. Defaults to 8. */
  concurrency?: number
  /** Parks the batch. No new item starts, and running items stop at a point where the same batch can continue them. */
  signal?: AbortSignal
  /** Called whenever a number changes. */
  onProgress?: (progress: BatchProgress) => void
  /** Number of items, for `onProgress`. Defaults to the length of a list, otherwise unknown. */
  total?: number
  /** The application's context, passed to `execute`. */
  context?: unknown
  /**
   * Shared budgets in addition to the agent's, as in `agent.run`. An item that the budgets cannot pay for ends in
   * `BUDGET_EXCEEDED`, and starting the batch again retries it. Needs an agent with a store.
   */
  budgets?: BudgetsOption
  /** Whether items that did not end in COMPLETED get one more run with the same input. Defaults to false. */
  retryFailed?: boolean
}
