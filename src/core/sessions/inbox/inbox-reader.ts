import type { Clock } from '../../base/clock.js'
import { attempt, chain } from '../../base/maybe-promise.js'
import type { InboxMessage, InboxPosition } from '../store/inbox.js'
import type { SessionStore } from '../store/store.js'
import { type InboxOwner, inboxOwners } from './inbox-owners.js'
import {
  addKey,
  parseQueuedMessage,
  type QueuedMessage,
  type QueuePosition,
  sortQueue,
} from './queued-message.js'

/** A delivered message. `event` is null if it cannot be parsed. */
interface OpenMessage<Event> {
  event: Event | null
  /** Whether it waits for the next turn if the current run does not read it. */
  isSteering: boolean
}

export interface InboxFormat<Event> {
  /** Returns null for unknown text, and for a queued one that the current run may not read. */
  parse(found: InboxMessage): Event | null
  isQueued(text: string): boolean
  /** Whether a later run reads the event if the current run has ended. */
  outlivesRun?(event: Event | null): boolean
}

interface InboxReaderParts<Event> {
  clock: Clock
  format: InboxFormat<Event>
  /** See `InboxReader.applied`. */
  applied: number
  keys: readonly string[]
  queued: number
  /** Number of the last message in the inbox when the lease was acquired. */
  found: number | undefined
  /** Rejects unless all records are durable and the lease is still held. */
  confirmHeld: () => Promise<void> | undefined
}

const ignore = (): void => undefined

/**
 * Reads the inbox of one session for its lease holder. Each message is delivered once, in order, and removed when its
 * event is durable. One that is already in the log was delivered by a process that crashed. Queued messages stay in
 * the inbox until a turn starts with the first of them.
 */
export class InboxReader<Event extends { key?: string }> implements InboxOwner {
  readonly sessionId: string
  readonly #store: SessionStore
  readonly #parts: InboxReaderParts<Event>
  /** Number of the last message in the log. */
  applied: number
  /** Number of the last message that was delivered or is in the log. */
  lastDelivered: number
  /** Delivered messages that are neither applied nor refused. They wait until there is a listener. */
  readonly #open = new Map<number, OpenMessage<Event>>()
  /** Messages in the log that are removed after the next write. */
  #done: number[] = []
  /** Idempotency keys of the latest messages in the log. */
  keys: readonly string[]
  readonly #seen: Set<string>
  /** The highest number that was reported. */
  #last = 0
  /** The last queued message that started a run, according to the log. */
  queued: number
  #hasQueued = false
  /** Number of the last message in the inbox. Undefined if the store does not report it. */
  #position: number | undefined
  /** Whether the inbox was empty when the session was acquired. Later messages are for the next run. */
  readonly #isEmpty: boolean
  #reading: Promise<void> | undefined
  #listener: ((message: number, event: Event | null) => void) | undefined
  #onQueued: ((queued: QueuedMessage) => void) | undefined
  #isClosed = false

  constructor(store: SessionStore, sessionId: string, parts: InboxReaderParts<Event>) {
    const { applied, keys, queued, found } = parts
    this.#store = store
    this.sessionId = sessionId
    this.#parts = parts
    this.applied = applied
    this.keys = keys
    this.#seen = new Set(keys)
    this.lastDelivered = applied
    this.queued = queued
    this.#position = found
    this.#isEmpty = found === 0 || !store.inbox
  }

  async readFirst(): Promise<void> {
    if (!this.#isEmpty) await this.read()
  }

  /** Removes the messages for a run that has ended, except queued ones and those that the next run reads. */
  async discard(): Promise<void> {
    if (this.#isEmpty) return
    const { format } = this.#parts
    const found = (await this.#store.inbox?.read(this.sessionId)) ?? []
    const last = found.at(-1)?.message ?? 0
    this.lastDelivered = Math.max(this.lastDelivered, last)
    for (const message of this.#open.keys()) if (message <= last) this.#forget(message)
    const unheard: number[] = []
    for (const one of found.filter(({ text }) => !format.isQueued(text))) {
      const event = format.parse(one)
      const isKept = one.message > this.applied && format.outlivesRun?.(event) === true
      if (isKept) this.#deliver(one.message, { event, isSteering: false })
      else unheard.push(one.message)
    }
    if (unheard.length > 0) await this.#removeAsHolder(unheard)
  }

  /** False only if the store reported an empty inbox. */
  get mayHaveMessages(): boolean {
    return this.#store.inbox !== undefined && this.#position !== 0
  }

  /** Whether a message has arrived since the session was acquired, according to the latest response of the store. */
  get hasNews(): boolean {
    return (this.#position ?? 0) > (this.#parts.found ?? Infinity)
  }

  /** The first queued message. `messages` is the transcript. */
  async findNext(messages: QueuePosition['messages']): Promise<QueuedMessage | null> {
    if (!this.mayHaveMessages) return null
    const found = (await this.#store.inbox?.read(this.sessionId)) ?? []
    const { waiting, settled } = sortQueue(found, { queued: this.queued, messages, keys: this.keys }, 1)
    this.remove(settled)
    return waiting[0] ?? null
  }

  /** The next run starts with this queued message, so it is no longer steering. */
  beginWith(queued: number): void {
    this.queued = queued
    this.#forget(queued)
  }

  #forget(message: number): void {
    const key = this.#open.get(message)?.event?.key
    if (key !== undefined) this.#seen.delete(key)
    this.#open.delete(message)
  }

  /** A run has started with these messages. Its start record may not be durable yet. */
  markSaid(queued: number | undefined, ids: readonly string[]): void {
    for (const id of ids) this.keys = addKey(this.keys, id)
    if (queued !== undefined) this.#done.push(queued)
  }

  /** Whether a message is being read, or has no outcome yet. */
  get hasOpenMessages(): boolean {
    return this.#open.size > 0 || this.#reading !== undefined
  }

  /** Delivers pending messages and all later ones. Called once. */
  onMessage(listener: (message: number, event: Event | null) => void): void {
    this.#listener = listener
    // A copy, because what the listener does may deliver more.
    for (const [message, { event }] of new Map(this.#open)) listener(message, event)
  }

  onQueued(listener: (queued: QueuedMessage) => void): void {
    this.#onQueued = listener
  }

  startPolling(): void {
    if (this.#store.inbox) inboxOwners.get(this.#store, this.#parts.clock).add(this)
  }

  stopPolling(): void {
    if (this.#store.inbox) inboxOwners.get(this.#store, this.#parts.clock).remove(this)
  }

  /** Stops reading. The process that takes over the session reads all messages that this one has not applied. */
  close(): void {
    this.#isClosed = true
  }

  /** A store's response may report new messages. */
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
      this.#last = this.lastDelivered
    })
  }

  /** Resolves when the messages that are being read have been delivered. */
  get reading(): Promise<void> | undefined {
    return this.#reading?.catch(ignore)
  }

  /** Returns undefined if the read was synchronous. */
  read(): Promise<void> | undefined {
    const { inbox } = this.#store
    if (!inbox) return undefined
    if (this.#reading) return this.#reading.then(() => this.read())
    // Queued messages stay in the inbox, and later reads skip them.
    const found = inbox.read(this.sessionId, this.#hasQueued ? this.lastDelivered : 0)
    this.#reading = chain(found, (messages) => this.#receive(messages))?.finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }

  #receive(messages: readonly InboxMessage[]): void {
    if (this.#isClosed) return
    const { format, applied: before } = this.#parts
    for (const found of messages) {
      const { message, text } = found
      if (format.isQueued(text)) this.#receiveQueued(found, format.parse(found))
      // The process that delivered the message crashed before removing it.
      else if (message <= before) this.remove([message])
      else if (message <= this.applied) this.#done.push(message)
      else if (this.#isNew(message)) this.#deliver(message, { event: format.parse(found), isSteering: false })
    }
  }

  #isNew(message: number): boolean {
    if (message <= this.lastDelivered) return false
    this.lastDelivered = message
    this.#last = Math.max(this.#last, message)
    return true
  }

  /** The current run may read a message with `steering`. If no run reads it, it waits for the next turn. */
  #receiveQueued(found: InboxMessage, steering: Event | null): void {
    const { message } = found
    if (steering?.key !== undefined && this.keys.includes(steering.key)) return void this.#done.push(message)
    this.#hasQueued ||= steering !== null || message > this.lastDelivered
    if (!this.#isNew(message) || message <= this.queued) return
    if (steering) return this.#deliver(message, { event: steering, isSteering: true })
    const queued = this.#onQueued && parseQueuedMessage(found)
    if (queued) this.#onQueued?.(queued)
  }

  /** Drops duplicates, because senders retry if a delivery was not confirmed. */
  #deliver(message: number, delivered: OpenMessage<Event>): void {
    const { event } = delivered
    if (event?.key !== undefined) {
      if (this.#seen.has(event.key)) return this.remove([message])
      this.#seen.add(event.key)
    }
    this.#open.set(message, delivered)
    this.#listener?.(message, event)
  }

  /** The event is in the log, though it may not be durable yet. */
  markApplied(message: number, key?: string): void {
    this.keys = addKey(this.keys, key)
    this.applied = Math.max(this.applied, message)
    if (this.#open.delete(message)) this.#done.push(message)
  }

  /** The run cannot apply the message. User messages then wait for the next turn. Returns whether it is removed. */
  refuse(message: number): boolean {
    const refused = this.#open.get(message)
    this.#open.delete(message)
    if (!refused || refused.isSteering) return false
    if (!this.#isClosed) this.#removeAsHolder([message]).catch(ignore)
    return true
  }

  /** A process that was suspended and lost its lease must not remove messages, which the new holder needs. */
  async #removeAsHolder(messages: readonly number[]): Promise<void> {
    await this.#parts.confirmHeld()
    await this.#store.inbox?.remove(this.sessionId, messages)
  }

  /** The run has ended, and a later one reads the message. */
  leave(message: number): void {
    this.#open.delete(message)
  }

  takeApplied(): number[] {
    return this.#done.splice(0)
  }

  /** Never fails: a message that cannot be removed now is skipped when it is read again. */
  remove(messages: readonly number[]): void {
    if (messages.length === 0) return
    void attempt(() => this.#store.inbox?.remove(this.sessionId, messages), ignore, ignore)
  }
}
