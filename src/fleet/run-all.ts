import type { Message } from '../../machines/agent/messages.js'
import {
  type AgentState,
  type AnyTools,
  type Reason,
  type RunResult,
  isRestState,
  isWorkState,
  isFinalState,
} from '../../machines/agent/run-result.js'
import type { Agent } from '../core/agent/agent-options.js'
import { createNap, onAbort } from '../core/base/abort.js'
import { type Clock, readElapsed } from '../core/base/clock.js'
import { StatewrightError, UsageError, inputError, optionError } from '../core/base/errors.js'
import { yieldToEventLoop } from '../core/base/platform.js'
import { runSession } from '../core/drive/drive.js'
import { readConversation, type RunInput } from '../core/sessions/input-history.js'
import { readSessionAt, toSessionSnapshot } from '../core/sessions/replay-session.js'
import { Session } from '../core/sessions/session.js'
import type { SessionStore } from '../core/sessions/store/store.js'
import { isHeldElsewhere } from '../core/sessions/store/store-error.js'
import { internalsByAgent } from '../core/agent/agent-internals.js'
import { checkBudgets, type BudgetsOption } from '../core/budgets/shared-budget.js'
import {
  callbackRule,
  checkOptions,
  countRule,
  flagRule,
  type OptionRules,
  signalRule,
} from '../core/config/check-options.js'
import { findNearestName } from '../core/base/text.js'
import { isSessionId } from '../core/sessions/store/session-id.js'
import { type SessionTags, findTagsFault } from '../core/sessions/store/session-tags.js'

/** The outcome of one item. */
export interface BatchResult<Item = BatchItem, Output = unknown, Tools = AnyTools> {
  /** The input item, unchanged. */
  item: Item
  /** The session id of the item. */
  session: string
  /** The run at its end or while it waits. Null if the item could not run (see `error`). */
  result: RunResult<Output, Tools> | null
  /** Why the item could not run: `invalid_input`, an unreadable log (`corrupt_log`, …), … */
  error?: StatewrightError
}

interface BatchParts<Item, Output, Tools> extends Omit<RunAllOptions, 'total'> {
  concurrency: number
  agent: Agent<Output, Tools>
  store: SessionStore | undefined
  /** Whether shields may have changed inputs before storing them. */
  isRedacted: boolean
  clock: Clock
  source: Iterator<Item> | AsyncIterator<Item>
  /** Maximum number of items that are started before their results are consumed. */
  lookAhead: number
  total: number | null
}

/** Retry delay for a session that another process holds, in milliseconds. */
const busyWaitMs = 1000

/** Errors that fail one item without stopping the batch. */
const itemCodes: ReadonlySet<string> = new Set([
  'input_changed',
  'invalid_input',
  'unsupported_content',
  'corrupt_log',
  'newer_log',
  'unknown_state',
  'unknown_session',
  'stranded',
])

/** One call of `runAll`: starts items while there is room, and yields their results in order. */
export async function* runItems<Item extends BatchItem, Output, Tools>(
  parts: BatchParts<Item, Output, Tools>,
): AsyncGenerator<BatchResult<Item, Output, Tools>, undefined> {
  type Result = BatchResult<Item, Output, Tools>
  /** The result, or a function that reads the result from the store. Null if the batch was parked first. */
  type Outcome = Result | (() => Promise<Result>) | null
  type Slot = Pick<Result, 'item' | 'session'> & { outcome: Promise<Outcome> }
  const { id, agent, store, clock, source, concurrency, lookAhead, signal, context, budgets } = parts
  const count = createCounter(parts)
  /** Aborts with the signal, and when the consumer leaves the loop. */
  const stop = new AbortController()
  const ids = new Set<string>()
  /** Started items whose results have not been consumed yet, in order. */
  const window: Slot[] = []
  let working = 0
  /** Items that resume as soon as there is room. */
  const returning: (() => void)[] = []
  let isExhausted = false
  let failure: { error: unknown } | null = null
  let isFilling = false
  /** Ends when an item starts, when no more items can start, and when the batch is parked. */
  const nap = createNap(clock)

  const canBegin = (): boolean =>
    !isExhausted &&
    failure === null &&
    !stop.signal.aborted &&
    returning.length === 0 &&
    working < concurrency &&
    window.length < lookAhead

  const fill = (): void => {
    if (isFilling || !canBegin()) return
    isFilling = true
    void beginItems()
  }

  /** Starts items while there is room. Never rejects. */
  const beginItems = async (): Promise<void> => {
    try {
      while (canBegin()) {
        const next = await source.next()
        if (next.done) isExhausted = true
        else if (!stop.signal.aborted) begin(next.value)
        nap.wake()
        // Items that have ended are read without waiting. Yield so that signals and timers can run.
        await yieldToEventLoop()
      }
    } catch (error) {
      failure = { error }
    }
    isFilling = false
    fill()
    nap.wake()
  }

  /** @throws {UsageError} `invalid_item`, `duplicate_item` */
  const begin = (item: Item): void => {
    const place = ids.size + 1
    const fault = findItemFault(id, item)
    if (fault !== null && typeof (item as Partial<BatchItem> | null)?.id !== 'string')
      throw new UsageError('invalid_item', `runAll: item ${place} ${fault}`, `items[${place - 1}]`)
    if (ids.has(item.id))
      throw new UsageError(
        'duplicate_item',
        `runAll: two items have the id '${item.id}'. Each item needs a unique id.`,
        item.id,
      )
    ids.add(item.id)
    const slot: Slot = { item, session: getBatchSessionId(id, item.id), outcome: Promise.resolve(null) }
    // `onProgress` may throw. An item without an outcome would then end the batch as if it were parked.
    if (fault === null) takeRoom()
    else slot.outcome = Promise.resolve(refuse(slot, inputError(`Item '${item.id}' ${fault}`, item.id)))
    window.push(slot)
    if (fault !== null) return
    slot.outcome = runItem(slot).finally(giveRoom)
    slot.outcome.catch((error: unknown) => {
      // Stops starting items. The error is thrown when its turn comes.
      failure ??= { error }
    })
  }

  const refuse = ({ item, session }: Slot, error: StatewrightError): Result => {
    count({ failed: 1 })
    return { item, session, result: null, error }
  }

  const settle = (end: Parameters<typeof isUnpaid>[0], cost: number | null): void => {
    const isWaiting = isRestState(end.state) || isUnpaid(end)
    count({ [end.state === 'COMPLETED' ? 'done' : isWaiting ? 'resting' : 'failed']: 1 }, cost)
  }

  const runItem = async (slot: Slot): Promise<Outcome> => {
    for (;;) {
      if (stop.signal.aborted) return null
      try {
        // Again, when the session is free.
        return await (store ? runStored(slot, store) : runInMemory(slot))
      } catch (error) {
        if (!(error instanceof StatewrightError)) throw error
        if (error.code === 'stopped' && stop.signal.aborted) return null
        if (itemCodes.has(error.code)) return refuse(slot, error)
        if (!isHeldElsewhere(error)) throw error
        await waitForOther()
      }
    }
  }

  const toRunOptions = ({ tags }: Item) => ({
    ...(tags && { tags }),
    context,
    signal: stop.signal,
    ...(budgets && { budgets }),
  })

  const runStored = async (slot: Slot, store: SessionStore): Promise<Outcome> => {
    const { item, session } = slot
    const turn = await findTurn(slot, store)
    const rest = await runSession(agent as unknown as Agent, {
      session,
      input: item.input,
      ...(turn !== undefined && { turn }),
      ...toRunOptions(item),
    })
    if (rest.stopped || isWorkState(rest.state)) return null
    settle(rest, rest.cost)
    const read = async (): Promise<Result> => {
      try {
        const { run } = await agent.replay(session)
        // Another process may have started the run in the meantime.
        expectInput((run as RunResult).messages, slot)
        return { item, session, result: await agent.withObject(run as RunResult) }
      } catch (error) {
        if (error instanceof StatewrightError && itemCodes.has(error.code))
          return { item, session, result: null, error }
        throw error
      }
    }
    // Results far from their turn are not kept in memory.
    return window.indexOf(slot) < 2 * concurrency ? read() : read
  }

  const findTurn = async (slot: Slot, store: SessionStore): Promise<number | undefined> => {
    if ((await store.get(slot.session)) === null) return undefined
    const folded = await readSessionAt(store, slot.session)
    const { run, messages } = toSessionSnapshot(folded, null)
    if (folded.runs === 0 || run === null) return undefined
    expectInput(messages, slot)
    const mayRetry = isUnpaid(run) || (parts.retryFailed && run.state !== 'COMPLETED')
    return isFinalState(run.state) && mayRetry ? folded.runs + 1 : undefined
  }

  /** The stored result of a changed input would answer a different question. */
  const expectInput = (messages: readonly Message[], { item, session }: Slot): void => {
    if (parts.isRedacted || hasInput(messages, item)) return
    throw new UsageError(
      'input_changed',
      `Session '${session}' was started with a different input. Use a batch id other than '${id}', or delete the session.`,
      session,
    )
  }

  const runInMemory = async ({ item, session }: Slot): Promise<Outcome> => {
    const run = (agent as unknown as Agent).run(item.input, {
      session: new Session(session),
      ...toRunOptions(item),
    })
    const result = (await run.result) as RunResult<Output, Tools>
    if (result.state === 'CANCELLED' && stop.signal.aborted) return null
    settle(result, result.usage.cost)
    return { item, session, result }
  }

  /** Waits before the next attempt at a session that another process holds. Frees the slot while waiting. */
  const waitForOther = async (): Promise<void> => {
    count({ held: 1 })
    giveRoom()
    try {
      await createNap(clock).sleep(busyWaitMs, stop.signal)
    } finally {
      count({ held: -1 })
    }
    if (working < concurrency) takeRoom()
    else await new Promise<void>((resolve) => returning.push(resolve))
  }

  const takeRoom = (): void => {
    working += 1
    count({ running: 1 })
  }

  /** Resuming items come before new ones. */
  const giveRoom = (): void => {
    const next = returning.shift()
    if (next) return next()
    working -= 1
    count({ running: -1 })
    fill()
  }

  const unfollow = signal ? onAbort(signal, () => stop.abort()) : () => undefined
  if (signal?.aborted) stop.abort()
  onAbort(stop.signal, nap.wake)
  try {
    for (;;) {
      fill()
      const [head] = window
      if (head) {
        const outcome = await head.outcome
        window.shift()
        if (outcome === null) return undefined
        fill()
        yield typeof outcome === 'function' ? await outcome() : outcome
      } else if (stop.signal.aborted) return undefined
      else if (isFilling) await nap.sleep(Infinity)
      else if (failure) throw (failure as { error: unknown }).error
      else return undefined
    }
  } finally {
    unfollow()
    stop.abort()
    await Promise.allSettled(window.map(({ outcome }) => outcome))
    // A source that is waiting for its next item ends when it receives one.
    void Promise.resolve(source.return?.()).catch(() => undefined)
  }
}

/** Returns a function that changes the counts and reports the progress. */
function createCounter({
  total,
  clock,
  onProgress,
}: Pick<BatchParts<unknown, unknown, unknown>, 'total' | 'clock' | 'onProgress'>) {
  const counts = { done: 0, running: 0, held: 0, resting: 0, failed: 0 }
  const startedAt = readElapsed(clock)
  let cost: number | null = 0
  const estimateTimeLeft = (): number | null => {
    const settled = counts.done + counts.failed + counts.resting
    if (total === null || settled === 0) return null
    return Math.round(((readElapsed(clock) - startedAt) / settled) * Math.max(0, total - settled))
  }
  return (changes: Partial<typeof counts>, paid: number | null = 0): void => {
    for (const [key, change] of Object.entries(changes)) counts[key as keyof typeof counts] += change
    cost = cost === null || paid === null ? null : cost + paid
    const { done, running, held, resting, failed } = counts
    const timeLeftMs = estimateTimeLeft()
    onProgress?.({ total, done, running, waiting: held + resting, failed, cost, timeLeftMs })
  }
}

/** Whether a shared budget could not pay for the item. A restarted batch tries it again. */
export function isUnpaid({ state, reason }: { state: AgentState; reason: Reason | null }): boolean {
  return state === 'BUDGET_EXCEEDED' && reason === 'shared_budget'
}

/** Ids and times are not compared, because the stored messages have new ids, and the current time if they had none. */
function hasInput(messages: readonly Message[], { input }: BatchItem): boolean {
  const { history, newMessages } = readConversation(input, 0)
  const toText = (message: { content?: unknown; tool_calls?: unknown } = {}): string =>
    JSON.stringify([message.content, message.tool_calls])
  return [...history, ...newMessages].every((message, i) => toText(message) === toText(messages[i]))
}

/** Maximum number of items started ahead of the next result. */
const maxLookAhead = 1000

const optionRules: OptionRules<RunAllOptions> = {
  id: null,
  concurrency: countRule,
  signal: signalRule,
  onProgress: callbackRule,
  total: { is: (value) => value === 0 || countRule.is(value), phrase: 'a whole number of at least 0' },
  context: null,
  budgets: null,
  retryFailed: flagRule,
}

/**
 * Runs an agent on many items concurrently, and yields their results in the order of the items.
 *
 * - With a store, each item is a session `ID.ITEM`. After a process crash, the same call continues: results of ended
 *   items are read from the store, and unfinished items resume. Requests that were in flight are repeated. A waiting
 *   item yields its waiting run.
 * - Without a store, items run in memory.
 * - Items are read on demand, at most a thousand ahead of the results, so the source can be a stream of any length.
 * - The batch waits for a session that another process holds.
 * - The loop ends early when `signal` aborts. Leaving the loop also parks the batch.
 *
 * @example
 * const items = [
 *   { id: 'april', input: 'Summarise the report on April.' },
 *   { id: 'may', input: 'Summarise the report on May.' },
 * ]
 * for await (const { item, result, session } of runAll(agent, items, { id: 'reports', concurrency: 4 }))
 *   console.log(item.id, session, result?.state, result?.output)
 * @throws {UsageError} `invalid_option`, `invalid_argument`; while it runs, `invalid_item` for an invalid item,
 * `duplicate_item`
 * @throws {ConfigError} while it runs, for an agent that cannot run: `missing_api_key`, …
 * @throws {StoreError} while it runs, when the store cannot be used: `store_unavailable`, …
 */
export function runAll<Item extends BatchItem, Output, Tools>(
  agent: Agent<Output, Tools>,
  items: Iterable<Item> | AsyncIterable<Item>,
  options: RunAllOptions,
): AsyncIterableIterator<BatchResult<Item, Output, Tools>> {
  const internals = typeof agent === 'object' && agent !== null ? internalsByAgent.get(agent) : undefined
  if (!internals)
    throw new UsageError(
      'invalid_argument',
      'runAll(agent, items, options): agent must be an agent created by createAgent().',
      'agent',
    )
  const source = toIterator(items)
  const checked = checkOptions('runAll(agent, items, options)', options, optionRules)
  const { id, concurrency = 8, budgets, total = Array.isArray(items) ? items.length : null } = checked
  checkBudgets(budgets)
  const fault = findBatchIdFault(id)
  if (fault !== null) throw optionError(`runAll: id ${fault}.`, 'id')
  return runItems<Item, Output, Tools>({
    ...checked,
    agent,
    store: internals.limitedStore,
    isRedacted: internals.parts.shields.input.length > 0,
    clock: internals.parts.clock,
    source,
    concurrency,
    lookAhead: Math.max(maxLookAhead, 2 * concurrency),
    total,
  })
}

function toIterator<Item>(items: Iterable<Item> | AsyncIterable<Item>): Iterator<Item> | AsyncIterator<Item> {
  if (typeof items === 'object' && items !== null) {
    if (Symbol.asyncIterator in items) return items[Symbol.asyncIterator]()
    if (Symbol.iterator in items) return items[Symbol.iterator]()
  }
  throw new UsageError(
    'invalid_argument',
    'runAll(agent, items, options): items must be an iterable of { id, input }.',
    'items',
  )
}

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
