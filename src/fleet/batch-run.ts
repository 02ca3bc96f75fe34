import type { BudgetsOption } from '../core/budgets/shared-budget.js'
import type { Message } from '../../machines/agent/messages.js'
import {
  type AgentState,
  type AnyTools,
  type Reason,
  type RunResult,
  isWorkState,
  isFinalState,
} from '../../machines/agent/run-result.js'
import type { Agent } from '../core/agent/agent-options.js'
import { onAbort, waitOn } from '../core/base/abort.js'
import { type Clock, readElapsed } from '../core/base/clock.js'
import { StatewrightError, UsageError, inputError } from '../core/base/errors.js'
import { yieldToEventLoop } from '../core/base/platform.js'
import { runSession } from '../core/drive/drive.js'
import { readConversation } from '../core/sessions/input-history.js'
import { readSessionAt, toSessionSnapshot } from '../core/sessions/replay-session.js'
import { Session } from '../core/sessions/session.js'
import type { SessionStore } from '../core/sessions/store/store.js'
import {
  BatchCounter,
  type BatchItem,
  type BatchProgress,
  findItemFault,
  getBatchSessionId,
} from './batch.js'

/** The outcome of one item. */
export interface BatchResult<Item = BatchItem, Output = unknown, Tools = AnyTools> {
  /** The input item, unchanged. */
  item: Item
  /** The session id of the item. */
  session: string
  /** The run at its end or while it waits. Null if the item could not run (see `error`). */
  result: RunResult<Output, Tools> | null
  /**
   * Why the item could not run, such as an unusable input (`invalid_input`) or an unreadable log (`corrupt_log`, …).
   */
  error?: StatewrightError
}

export interface BatchParts<Item, Output, Tools> {
  id: string
  concurrency: number
  agent: Agent<Output, Tools>
  store: SessionStore | undefined
  /** Whether shields may have changed inputs before storing them. */
  isRedacted: boolean
  clock: Clock
  source: Iterator<Item> | AsyncIterator<Item>
  /** Maximum number of items that are started before their results are consumed. */
  lookAhead: number
  signal: AbortSignal | undefined
  onProgress: ((progress: BatchProgress) => void) | undefined
  total: number | null
  context: unknown
  budgets: BudgetsOption | undefined
  retryFailed: boolean
}

/** Retry delay for a session that another process holds, in milliseconds. */
const busyWaitMs = 1000

/** Errors caused by another process that holds the session. */
const takenCodes: ReadonlySet<string> = new Set(['session_busy', 'lease_lost', 'out_of_order'])
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

interface Slot<Item, Output, Tools> {
  item: Item
  session: string
  /** The result, or a function that reads the result from the store. Null if the batch was parked first. */
  outcome: Promise<Outcome<Item, Output, Tools>>
}

type Outcome<Item, Output, Tools> =
  | BatchResult<Item, Output, Tools>
  | (() => Promise<BatchResult<Item, Output, Tools>>)
  | null

/** One call of `runAll`: starts items while there is room, and yields their results in order. */
export class BatchRun<Item extends BatchItem, Output, Tools> {
  readonly #parts: BatchParts<Item, Output, Tools>
  readonly #counter: BatchCounter
  /** Aborts with the signal, and when the consumer leaves the loop. */
  readonly #stop = new AbortController()
  readonly #ids = new Set<string>()
  /** Started items whose results have not been consumed yet, in order. */
  readonly #window: Slot<Item, Output, Tools>[] = []
  #working = 0
  /** Items that resume as soon as there is room. */
  readonly #returning: (() => void)[] = []
  #isExhausted = false
  #failure: { error: unknown } | null = null
  #isFilling = false
  /** Called when an item starts, when no more items can start, and when the batch is parked. */
  #onChange: () => void = () => undefined

  constructor(parts: BatchParts<Item, Output, Tools>) {
    this.#parts = parts
    this.#counter = new BatchCounter(parts.total, () => readElapsed(parts.clock), parts.onProgress)
  }

  async *readResults(): AsyncGenerator<BatchResult<Item, Output, Tools>, undefined> {
    const { signal, source } = this.#parts
    const unfollow = signal ? onAbort(signal, () => this.#stop.abort()) : () => undefined
    if (signal?.aborted) this.#stop.abort()
    onAbort(this.#stop.signal, () => this.#onChange())
    try {
      /* oxlint-disable no-await-in-loop -- one result after the other */
      for (;;) {
        this.#fill()
        const [head] = this.#window
        if (head) {
          const outcome = await head.outcome
          this.#window.shift()
          if (outcome === null) return undefined
          this.#fill()
          yield typeof outcome === 'function' ? await outcome() : outcome
        } else if (this.#stop.signal.aborted) return undefined
        else if (this.#isFilling) await new Promise<void>((resolve) => (this.#onChange = resolve))
        else if (this.#failure) throw this.#failure.error
        else return undefined
      }
      /* oxlint-enable no-await-in-loop */
    } finally {
      unfollow()
      this.#stop.abort()
      await Promise.allSettled(this.#window.map(({ outcome }) => outcome))
      // A source that is waiting for its next item ends when it receives one.
      void Promise.resolve(source.return?.()).catch(() => undefined)
    }
  }

  get #canBegin(): boolean {
    const { concurrency, lookAhead } = this.#parts
    return (
      !this.#isExhausted &&
      this.#failure === null &&
      !this.#stop.signal.aborted &&
      this.#returning.length === 0 &&
      this.#working < concurrency &&
      this.#window.length < lookAhead
    )
  }

  #fill(): void {
    if (this.#isFilling || !this.#canBegin) return
    this.#isFilling = true
    void this.#beginItems()
  }

  /** Starts items while there is room. Never rejects. */
  async #beginItems(): Promise<void> {
    try {
      /* oxlint-disable no-await-in-loop -- one item after the other */
      while (this.#canBegin) {
        const next = await this.#parts.source.next()
        if (next.done) this.#isExhausted = true
        else if (!this.#stop.signal.aborted) this.#begin(next.value)
        this.#onChange()
        // Items that have ended are read without waiting. Yield so that signals and timers can run.
        await yieldToEventLoop()
      }
      /* oxlint-enable no-await-in-loop */
    } catch (error) {
      this.#failure = { error }
    }
    this.#isFilling = false
    this.#fill()
    this.#onChange()
  }

  /** @throws {UsageError} `invalid_item`, `duplicate_item` */
  #begin(item: Item): void {
    const { id } = this.#parts
    const place = this.#ids.size + 1
    const fault = findItemFault(id, item)
    if (fault !== null && typeof (item as Partial<BatchItem> | null)?.id !== 'string')
      throw new UsageError('invalid_item', `runAll: item ${place} ${fault}`, `items[${place - 1}]`)
    if (this.#ids.has(item.id))
      throw new UsageError(
        'duplicate_item',
        `runAll: two items have the id '${item.id}'. Each item needs a unique id.`,
        item.id,
      )
    this.#ids.add(item.id)
    const session = getBatchSessionId(id, item.id)
    if (fault !== null) {
      const error = inputError(`Item '${item.id}' ${fault}`, item.id)
      this.#counter.settle(null, 0)
      this.#window.push({ item, session, outcome: Promise.resolve({ item, session, result: null, error }) })
      return
    }
    const slot: Slot<Item, Output, Tools> = { item, session, outcome: Promise.resolve(null) }
    this.#window.push(slot)
    this.#takeRoom()
    slot.outcome = this.#runItem(slot).finally(() => this.#giveRoom())
    slot.outcome.catch((error: unknown) => {
      // Stops starting items. The error is thrown when its turn comes.
      this.#failure ??= { error }
    })
  }

  async #runItem(slot: Slot<Item, Output, Tools>): Promise<Outcome<Item, Output, Tools>> {
    const { item, session } = slot
    for (;;) {
      if (this.#stop.signal.aborted) return null
      try {
        // oxlint-disable-next-line no-await-in-loop -- again, when the session is free
        return await (this.#parts.store ? this.#runStored(slot, this.#parts.store) : this.#runInMemory(slot))
      } catch (error) {
        if (!(error instanceof StatewrightError)) throw error
        if (error.code === 'stopped' && this.#stop.signal.aborted) return null
        if (itemCodes.has(error.code)) {
          this.#counter.settle(null, 0)
          return { item, session, result: null, error }
        }
        if (!takenCodes.has(error.code)) throw error
        // oxlint-disable-next-line no-await-in-loop -- see above
        await this.#waitForOther()
      }
    }
  }

  async #runStored(
    slot: Slot<Item, Output, Tools>,
    store: SessionStore,
  ): Promise<Outcome<Item, Output, Tools>> {
    const { agent, context, budgets } = this.#parts
    const { item, session } = slot
    const { signal } = this.#stop
    const turn = await this.#findTurn(slot, store)
    const rest = await runSession(agent as unknown as Agent, {
      session,
      input: item.input,
      ...(turn !== undefined && { turn }),
      ...(item.tags && { tags: item.tags }),
      context,
      signal,
      ...(budgets && { budgets }),
    })
    if (rest.stopped || isWorkState(rest.state)) return null
    this.#counter.settle(rest.state, rest.cost, isUnpaid(rest))
    const read = async (): Promise<BatchResult<Item, Output, Tools>> => {
      try {
        const { run } = await agent.replay(session)
        // Another process may have started the run in the meantime.
        this.#expectInput((run as RunResult).messages, slot)
        return { item, session, result: await agent.withObject(run as RunResult) }
      } catch (error) {
        if (error instanceof StatewrightError && itemCodes.has(error.code))
          return { item, session, result: null, error }
        throw error
      }
    }
    // Results far from their turn are not kept in memory.
    return this.#window.indexOf(slot) < 2 * this.#parts.concurrency ? read() : read
  }

  async #findTurn(slot: Slot<Item, Output, Tools>, store: SessionStore): Promise<number | undefined> {
    if ((await store.get(slot.session)) === null) return undefined
    const folded = await readSessionAt(store, slot.session)
    const { run, messages } = toSessionSnapshot(folded, null)
    if (folded.runs === 0 || run === null) return undefined
    this.#expectInput(messages, slot)
    const mayRetry = isUnpaid(run) || (this.#parts.retryFailed && run.state !== 'COMPLETED')
    return isFinalState(run.state) && mayRetry ? folded.runs + 1 : undefined
  }

  #expectInput(messages: readonly Message[], { item, session }: Slot<Item, Output, Tools>): void {
    if (!this.#parts.isRedacted && !hasInput(messages, item))
      throw createChangedInputError(session, this.#parts.id)
  }

  async #runInMemory({ item, session }: Slot<Item, Output, Tools>): Promise<Outcome<Item, Output, Tools>> {
    const { agent, context, budgets } = this.#parts
    const run = (agent as unknown as Agent).run(item.input, {
      session: new Session(session),
      ...(item.tags && { tags: item.tags }),
      context,
      signal: this.#stop.signal,
      ...(budgets && { budgets }),
    })
    const result = (await run.result) as RunResult<Output, Tools>
    if (result.state === 'CANCELLED' && this.#stop.signal.aborted) return null
    this.#counter.settle(result.state, result.usage.cost, isUnpaid(result))
    return { item, session, result }
  }

  /** Waits before the next attempt at a session that another process holds. Frees the slot while waiting. */
  async #waitForOther(): Promise<void> {
    const { clock, concurrency } = this.#parts
    this.#counter.addHeld(1)
    this.#giveRoom()
    try {
      await waitOn(clock, busyWaitMs, this.#stop.signal)
    } finally {
      this.#counter.addHeld(-1)
    }
    if (this.#working < concurrency) this.#takeRoom()
    else await new Promise<void>((resolve) => this.#returning.push(resolve))
  }

  #takeRoom(): void {
    this.#working += 1
    this.#counter.addRunning(1)
  }

  /** Resuming items come before new ones. */
  #giveRoom(): void {
    const next = this.#returning.shift()
    if (next) return next()
    this.#working -= 1
    this.#counter.addRunning(-1)
    this.#fill()
  }
}

/** Whether a shared budget could not pay for the item. A restarted batch tries it again. */
export function isUnpaid({ state, reason }: { state: AgentState; reason: Reason | null }): boolean {
  return state === 'BUDGET_EXCEEDED' && reason === 'shared_budget'
}

function hasInput(messages: readonly Message[], { input }: BatchItem): boolean {
  const { history, newMessages } = readConversation(input, 0)
  return newMessages.every(
    ({ content }, i) => JSON.stringify(messages[history.length + i]?.content) === JSON.stringify(content),
  )
}

/** The error for an item whose input has changed, because the stored result would answer a different question. */
function createChangedInputError(session: string, batch: string): UsageError {
  return new UsageError(
    'input_changed',
    `Session '${session}' was started with a different input. Use a batch id other than '${batch}', or delete the session.`,
    session,
  )
}
