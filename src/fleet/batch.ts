import { UsageError } from '../core/base/errors.js'
import { findNearestName } from '../core/base/text.js'
import { type RunInput, readConversation } from '../core/sessions/input-history.js'
import { isSessionId } from '../core/sessions/store/session-id.js'
import { type SessionTags, findTagsFault } from '../core/sessions/store/session-tags.js'
import { type AgentState, isRestState } from '../../machines/agent/run-result.js'

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
export function getBatchSessionId(batch: string, item: string): string {
  return `${batch}.${item}`
}

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

export class BatchCounter {
  #running = 0
  #held = 0
  #resting = 0
  #done = 0
  #failed = 0
  #cost: number | null = 0
  readonly #total: number | null
  readonly #now: () => number
  readonly #startedAt: number
  readonly #listener: ((progress: BatchProgress) => void) | undefined

  /** `now` is a monotonic clock in milliseconds. */
  constructor(
    total: number | null,
    now: () => number,
    listener: ((progress: BatchProgress) => void) | undefined,
  ) {
    this.#total = total
    this.#now = now
    this.#startedAt = now()
    this.#listener = listener
  }

  addRunning(change: 1 | -1): void {
    this.#running += change
    this.#tell()
  }

  /** An item starts or stops waiting for another process. */
  addHeld(change: 1 | -1): void {
    this.#held += change
    this.#tell()
  }

  settle(state: AgentState | null, cost: number | null, isParked = false): void {
    if (state === 'COMPLETED') this.#done += 1
    else if (isRestState(state) || isParked) this.#resting += 1
    else this.#failed += 1
    this.#cost = this.#cost === null || cost === null ? null : this.#cost + cost
    this.#tell()
  }

  get progress(): BatchProgress {
    return {
      total: this.#total,
      done: this.#done,
      running: this.#running,
      waiting: this.#held + this.#resting,
      failed: this.#failed,
      cost: this.#cost,
      timeLeftMs: this.#estimateTimeLeft(),
    }
  }

  #estimateTimeLeft(): number | null {
    const settled = this.#done + this.#failed + this.#resting
    if (this.#total === null || settled === 0) return null
    return Math.round(((this.#now() - this.#startedAt) / settled) * Math.max(0, this.#total - settled))
  }

  #tell(): void {
    this.#listener?.(this.progress)
  }
}
