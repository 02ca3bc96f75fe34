import type { Clock } from '../../base/clock.js'
import { attempt, chain } from '../../base/maybe-promise.js'
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

/** `event` is null if the message cannot be parsed. */
type Listener<Event> = (message: number, event: Event | null) => void

interface ReadMessage<Event> {
  message: number
  event: Event | null
}

export interface InboxFormat<Event> {
  /** Returns null for unknown text. */
  parse(found: InboxMessage): Event | null
  isQueued(text: string): boolean
  /** The event for a queued text that the current run may read, or null. */
  toSteering(found: InboxMessage): Event | null
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
  /** Messages that were delivered but neither applied nor refused yet. */
  readonly #open = new Set<number>()
  readonly #steering = new Set<number>()
  /** Messages in the log that are removed after the next write. */
  #done: number[] = []
  /** Idempotency keys of the latest messages in the log. */
  keys: readonly string[]
  readonly #seen: Set<string>
  #last = 0
  /** The last queued message that started a run, according to the log. */
  queued: number
  #hasQueued = false
  /** Number of the last message in the inbox. Undefined if the store does not report it. */
  #position: number | undefined
  /** Whether the inbox was empty when the session was acquired. Later messages are for the next run. */
  readonly #isEmpty: boolean
  #reading: Promise<void> | undefined
  #waiting: ReadMessage<Event>[] = []
  #listener: Listener<Event> | undefined
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
    this.#forgetRead((message) => message <= last)
    const unheard: number[] = []
    for (const one of found.filter(({ text }) => !format.isQueued(text))) {
      const event = format.parse(one)
      const isKept = one.message > this.applied && format.outlivesRun?.(event) === true
      if (isKept) this.#receiveNew({ message: one.message, event })
      else unheard.push(one.message)
    }
    if (unheard.length === 0) return
    // A process that was suspended and lost its lease must not remove messages for a later run.
    await this.#parts.confirmHeld()
    await this.#store.inbox?.remove(this.sessionId, unheard)
  }

  /** False only if the store reported an empty inbox. */
  get mayHaveMessages(): boolean {
    return this.#store.inbox !== undefined && this.#position !== 0
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
    this.#forgetRead((message) => message === queued)
  }

  #forgetRead(isIt: (message: number) => boolean): void {
    for (const { message, event } of this.#waiting.filter((read) => isIt(read.message))) {
      this.#open.delete(message)
      if (event?.key !== undefined) this.#seen.delete(event.key)
    }
    this.#waiting = this.#waiting.filter(({ message }) => !isIt(message))
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

  /** Delivers pending messages and all later ones. */
  onMessage(listener: Listener<Event>): void {
    this.#listener = listener
    for (const { message, event } of this.#waiting.splice(0)) listener(message, event)
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
    return this.#reading?.catch(() => undefined)
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
      if (format.isQueued(text)) {
        const steering = format.toSteering(found)
        if (steering === null) this.#receiveQueued(found)
        else this.#receiveSteering(message, steering)
      }
      // The process that delivered the message crashed before removing it.
      else if (message <= before) this.remove([message])
      else if (message <= this.applied) this.#done.push(message)
      else if (this.#markDelivered(message)) this.#receiveNew({ message, event: format.parse(found) })
    }
  }

  /** Returns whether the message was not delivered before. */
  #markDelivered(message: number): boolean {
    if (message <= this.lastDelivered) return false
    this.lastDelivered = message
    this.#last = Math.max(this.#last, message)
    return true
  }

  /** A message for the current run. If no run reads it, it waits for the next turn. */
  #receiveSteering(message: number, event: Event): void {
    if (event.key !== undefined && this.keys.includes(event.key)) {
      this.#done.push(message)
      return
    }
    this.#hasQueued = true
    if (message <= this.queued || !this.#markDelivered(message)) return
    this.#steering.add(message)
    this.#receiveNew({ message, event })
  }

  #receiveQueued(found: InboxMessage): void {
    if (!this.#markDelivered(found.message)) return
    this.#hasQueued = true
    const queued = found.message > this.queued && this.#onQueued ? parseQueuedMessage(found) : null
    if (queued) this.#onQueued?.(queued)
  }

  /** Drops duplicates, because senders retry if a delivery was not confirmed. */
  #receiveNew(read: ReadMessage<Event>): void {
    const key = read.event?.key
    if (key !== undefined && this.#seen.has(key)) return this.remove([read.message])
    if (key !== undefined) this.#seen.add(key)
    this.#open.add(read.message)
    if (this.#listener) this.#listener(read.message, read.event)
    else this.#waiting.push(read)
  }

  /** The event is in the log, though it may not be durable yet. */
  markApplied(message: number, key?: string): void {
    this.keys = addKey(this.keys, key)
    this.applied = Math.max(this.applied, message)
    if (this.#open.delete(message)) this.#done.push(message)
  }

  /** The run cannot apply the message. User messages then wait for the next turn. Returns whether it is removed. */
  refuse(message: number): boolean {
    if (!this.#open.delete(message) || this.#steering.has(message)) return false
    if (!this.#isClosed) void this.#removeRefused(message)
    return true
  }

  /** A suspended process may refuse a message by mistake. The holder of a new lease then still needs it. */
  async #removeRefused(message: number): Promise<void> {
    try {
      await this.#parts.confirmHeld()
      this.remove([message])
    } catch {
      // The message is kept.
    }
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
    const ignore = (): void => undefined
    void attempt(() => this.#store.inbox?.remove(this.sessionId, messages), ignore, ignore)
  }
}
