import { UsageError } from '../core/base/errors.js'
import { findNearestName } from '../core/base/text.js'
import { type RunInput, readConversation } from '../core/sessions/input-history.js'
import { isSessionId } from '../core/sessions/store/session-id.js'
import { type SessionTags, findTagsFault } from '../core/sessions/store/session-tags.js'
import { type AgentState, isRestState } from '../../machines/agent/run-result.js'

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

/** How a batch stands. */
export interface BatchProgress {
  /** Items of the batch; null while it is not known. */
  total: number | null
  /** Items that are COMPLETED. */
  done: number
  /** Items at work. */
  running: number
  /** Items that wait for an answer, for a shared budget, or for another process that has their session. */
  waiting: number
  /** Items that ended in any other state. */
  failed: number
  /** Of all items that were settled so far, in USD; null as soon as one is not known. */
  cost: number | null
  /** An estimate from the items of this call, in milliseconds; null while there is none. */
  timeLeftMs: number | null
}

/** Counts the items of a batch, and tells a listener each time that a number changes. */
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

  /** `now`: milliseconds that pass steadily. */
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

  /** An item goes to work, or leaves it. */
  addRunning(change: 1 | -1): void {
    this.#running += change
    this.#tell()
  }

  /** An item begins to wait for another process, or ends to. */
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
