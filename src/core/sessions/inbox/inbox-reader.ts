import type { Clock } from '../../base/clock.js'
import type { InboxMessage, InboxPosition } from '../store/inbox.js'
import type { SessionStore } from '../store/store.js'
import { type InboxOwner, inboxOwners } from './inbox-owners.js'
import {
  parseQueuedMessage,
  type QueuedMessage,
  type QueuePosition,
  sortQueue,
  addKey,
} from './queued-message.js'

/** Receives a message. `event` is null if the message cannot be parsed. */
type Listener<Event> = (message: number, event: Event | null) => void

type QueueListener = (queued: QueuedMessage) => void

interface ReadMessage<Event> {
  message: number
  event: Event | null
}

/** How a type of session parses the texts in its inbox. */
export interface InboxFormat<Event> {
  /** Parses a message. Returns null for unknown text. */
  parse(found: InboxMessage): Event | null
  /** Whether the text waits in the inbox for the next turn. */
  isQueued(text: string): boolean
  /** The event for a queued text that the current run may read, or null. */
  toSteering(found: InboxMessage): Event | null
  /** Whether a later run reads the event if the current run has ended. */
  outlivesRun?(event: Event | null): boolean
}

interface InboxReaderParts<Event> {
  clock: Clock
  format: InboxFormat<Event>
  /** Number of the last message in the log. */
  applied: number
  keys: readonly string[]
  /** The last queued message that started a run. */
  queued: number
  /** Number of the last message in the inbox when the lease was acquired. */
  found: number | undefined
  /** Resolves when all records are durable and the lease is still held. Rejects otherwise. */
  confirmHeld: () => Promise<void> | undefined
}

/**
 * Reads the inbox of one session for its lease holder. Each message is delivered once, in order, and removed when its
 * event is durable. If a message is already in the log, a process delivered it and crashed before removing it. Queued
 * messages stay in the inbox until the next turn starts with the first of them.
 */
export class InboxReader<Event extends { key?: string }> implements InboxOwner {
  readonly sessionId: string
  readonly #store: SessionStore
  readonly #clock: Clock
  /** Number of the last message that was in the log when the session was acquired. */
  readonly #before: number
  /** Number of the last message in the log. */
  #applied: number
  #lastDelivered: number
  /** Messages that were delivered but neither applied nor refused yet. */
  readonly #open = new Set<number>()
  /** Delivered user messages. */
  readonly #steering = new Set<number>()
  /** Messages in the log that are removed after the next write. */
  #done: number[] = []
  /** Idempotency keys of the latest messages in the log. */
  #keys: readonly string[]
  /** `#keys` plus the keys of delivered messages. */
  readonly #seen: Set<string>
  #last = 0
  /** The last queued message that started a run, according to the log. */
  #queued: number
  #hasQueued = false
  /** Number of the last message in the inbox. Undefined if the store does not report it. */
  #position: number | undefined
  /** Whether the inbox was empty when the session was acquired. */
  readonly #isEmpty: boolean
  #reading: Promise<void> | undefined
  #waiting: ReadMessage<Event>[] = []
  #listener: Listener<Event> | undefined
  #onQueued: QueueListener | undefined
  #isClosed = false
  readonly #confirmHeld: InboxReaderParts<Event>['confirmHeld']
  readonly #format: InboxFormat<Event>

  constructor(
    store: SessionStore,
    sessionId: string,
    { clock, format, applied, keys, queued, found, confirmHeld }: InboxReaderParts<Event>,
  ) {
    this.#store = store
    this.sessionId = sessionId
    this.#clock = clock
    this.#before = applied
    this.#applied = applied
    this.#keys = keys
    this.#seen = new Set(keys)
    this.#lastDelivered = applied
    this.#queued = queued
    this.#position = found
    this.#isEmpty = found === 0 || !store.inbox
    this.#confirmHeld = confirmHeld
    this.#format = format
  }

  /** Reads the messages for a run that resumes. */
  async readFirst(): Promise<void> {
    if (!this.#isEmpty) await this.read()
  }

  /**
   * Removes the messages for a run that has ended. Queued messages are kept, and so are messages that the next run
   * reads.
   */
  async discard(): Promise<void> {
    if (this.#isEmpty) return
    const found = (await this.#store.inbox?.read(this.sessionId)) ?? []
    const last = found.at(-1)?.message ?? 0
    this.#lastDelivered = Math.max(this.#lastDelivered, last)
    this.#forgetRead((message) => message <= last)
    const others = found.filter(({ text }) => !this.#format.isQueued(text))
    const unheard: number[] = []
    for (const one of others) {
      const event = this.#format.parse(one)
      const isKept = one.message > this.#applied && this.#format.outlivesRun?.(event) === true
      if (isKept) this.#receiveNew({ message: one.message, event })
      else unheard.push(one.message)
    }
    if (unheard.length === 0) return
    // A process that was suspended and lost its lease must not remove messages for a later run.
    await this.#confirmHeld()
    await this.#store.inbox?.remove(this.sessionId, unheard)
  }

  /** Whether the inbox may contain queued messages. False only if the store reported an empty inbox. */
  get mayHaveQueued(): boolean {
    return this.#store.inbox !== undefined && this.#position !== 0
  }

  /** The first queued message, or null. `messages` is the transcript. */
  async findNext(messages: QueuePosition['messages']): Promise<QueuedMessage | null> {
    if (!this.mayHaveQueued) return null
    const found = (await this.#store.inbox?.read(this.sessionId)) ?? []
    const { waiting, settled } = sortQueue(found, { queued: this.#queued, messages, keys: this.#keys }, 1)
    this.removeDurable(settled)
    return waiting[0] ?? null
  }

  /** Excludes this queued message from steering, because the next run starts with it. */
  beginWith(queued: number): void {
    this.#queued = queued
    this.#forgetRead((message) => message === queued)
  }

  #forgetRead(isIt: (message: number) => boolean): void {
    for (const { message, event } of this.#waiting.filter((read) => isIt(read.message))) {
      this.#open.delete(message)
      if (event?.key !== undefined) this.#seen.delete(event.key)
    }
    this.#waiting = this.#waiting.filter(({ message }) => !isIt(message))
  }

  /** Called when a run has started with these messages. The run's start record may not be durable yet. */
  markSaid(queued: number | undefined, ids: readonly string[]): void {
    for (const id of ids) this.#keys = addKey(this.#keys, id)
    if (queued !== undefined) this.#done.push(queued)
  }

  /** The last queued message that started a run, according to the log. */
  get queued(): number {
    return this.#queued
  }

  /** The number of the last message in the log. */
  get applied(): number {
    return this.#applied
  }

  get keys(): readonly string[] {
    return this.#keys
  }

  /** Number of the last message that was delivered or is in the log. */
  get lastDelivered(): number {
    return this.#lastDelivered
  }

  /** Whether a message is being read, or was delivered and has no outcome yet. */
  get hasOpenMessages(): boolean {
    return this.#open.size > 0 || this.#reading !== undefined
  }

  /** Delivers pending messages and all later ones. */
  onMessage(listener: Listener<Event>): void {
    this.#listener = listener
    for (const { message, event } of this.#waiting.splice(0)) listener(message, event)
  }

  /** Reports messages that are queued while the run holds the session. */
  onQueued(listener: QueueListener): void {
    this.#onQueued = listener
  }

  startPolling(): void {
    if (this.#store.inbox) inboxOwners.get(this.#store, this.#clock).add(this)
  }

  stopPolling(): void {
    if (this.#store.inbox) inboxOwners.get(this.#store, this.#clock).remove(this)
  }

  /**
   * Stops reading, because another process takes over the session. That process reads all messages that this process
   * has not applied.
   */
  close(): void {
    this.#isClosed = true
  }

  /** Reads the inbox position in a store response, which may report new messages. */
  noteAnswer(answer: InboxPosition | undefined | void): void {
    if (!answer) return
    this.#position = answer.inbox
    this.notify(answer.inbox)
  }

  notify(inbox: number): void {
    if (inbox <= this.#last || this.#isClosed) return
    this.#last = inbox
    this.#position = inbox
    this.read()?.catch(() => {
      // The next write or poll will report the new messages again.
      this.#last = this.#lastDelivered
    })
  }

  /** Resolves when the messages that are being read have been delivered. Undefined if no messages are being read. */
  get reading(): Promise<void> | undefined {
    // The next write or poll reads them again.
    return this.#reading?.catch(() => undefined)
  }

  /** Reads the inbox. Returns undefined if the read was synchronous. */
  read(): Promise<void> | undefined {
    const { inbox } = this.#store
    if (!inbox) return undefined
    if (this.#reading) return this.#reading.then(() => this.read())
    // Queued messages stay in the inbox, and later reads skip them.
    const found = inbox.read(this.sessionId, this.#hasQueued ? this.#lastDelivered : 0)
    if (!(found instanceof Promise)) {
      this.#receive(found)
      return undefined
    }
    this.#reading = found
      .then((messages) => this.#receive(messages))
      .finally(() => {
        this.#reading = undefined
      })
    return this.#reading
  }

  #receive(messages: readonly InboxMessage[]): void {
    if (this.#isClosed) return
    for (const found of messages) {
      if (this.#format.isQueued(found.text)) {
        const steering = this.#format.toSteering(found)
        if (steering === null) this.#receiveQueued(found)
        else this.#receiveSteering(found.message, steering)
        continue
      }
      // The process that delivered the message crashed before removing it.
      if (found.message <= this.#before) this.#remove([found.message])
      else if (found.message <= this.#applied) this.#done.push(found.message)
      else if (found.message > this.#lastDelivered) {
        this.#lastDelivered = found.message
        this.#last = Math.max(this.#last, found.message)
        this.#receiveNew({ message: found.message, event: this.#format.parse(found) })
      }
    }
  }

  /** Receives a user message for the current run. A message that no run reads waits for the next turn. */
  #receiveSteering(message: number, event: Event): void {
    if (event.key !== undefined && this.#keys.includes(event.key)) {
      this.#done.push(message)
      return
    }
    this.#hasQueued = true
    if (message <= this.#lastDelivered || message <= this.#queued) return
    this.#lastDelivered = message
    this.#last = Math.max(this.#last, message)
    this.#steering.add(message)
    this.#receiveNew({ message, event })
  }

  #receiveQueued(found: InboxMessage): void {
    const { message } = found
    if (message <= this.#lastDelivered) return
    this.#lastDelivered = message
    this.#last = Math.max(this.#last, message)
    this.#hasQueued = true
    const queued = message > this.#queued && this.#onQueued ? parseQueuedMessage(found) : null
    if (queued) this.#onQueued?.(queued)
  }

  /** Drops duplicates, because senders retry if a delivery was not confirmed. */
  #receiveNew(read: ReadMessage<Event>): void {
    const key = read.event?.key
    if (key !== undefined && this.#seen.has(key)) {
      this.#remove([read.message])
      return
    }
    if (key !== undefined) this.#seen.add(key)
    this.#open.add(read.message)
    if (this.#listener) this.#listener(read.message, read.event)
    else this.#waiting.push(read)
  }

  /** Called once the event is in the log, though it may not be durable yet. */
  markApplied(message: number, key?: string): void {
    this.#keys = addKey(this.#keys, key)
    this.#applied = Math.max(this.#applied, message)
    if (this.#open.delete(message)) this.#done.push(message)
  }

  /**
   * Called if the run cannot apply the message. User messages then wait for the next turn, and other messages are
   * removed. Returns whether the message was removed.
   */
  refuse(message: number): boolean {
    if (!this.#open.delete(message) || this.#steering.has(message)) return false
    if (!this.#isClosed) void this.#removeRefused(message)
    return true
  }

  /**
   * Removes a refused message. A process that was suspended, or has unwritten records, may refuse a message by mistake.
   * If this process has lost the lease, the message is kept for the process that holds the lease.
   */
  async #removeRefused(message: number): Promise<void> {
    try {
      await this.#confirmHeld()
      this.#remove([message])
    } catch {
      // The message is kept.
    }
  }

  /** Leaves the message in the inbox, because the run has ended and a later run reads it. */
  leave(message: number): void {
    this.#open.delete(message)
  }

  /** Returns the applied messages, to be removed once they are durable. */
  takeApplied(): number[] {
    return this.#done.splice(0)
  }

  /** Removes messages whose events are durable in the log. */
  removeDurable(settled: readonly number[]): void {
    if (settled.length > 0) this.#remove(settled)
  }

  /** Removes messages. Never fails. A message that cannot be removed now is skipped when it is read again. */
  #remove(messages: readonly number[]): void {
    try {
      const removed = this.#store.inbox?.remove(this.sessionId, messages)
      if (removed instanceof Promise) removed.catch(() => undefined)
    } catch {
      // The message is skipped when it is read again.
    }
  }
}
