import type { ControlEvent } from '../../../../machines/agent/machine-events.js'
import type { Clock } from '../../base/clock.js'
import type { InboxMessage, InboxPosition } from '../store/inbox.js'
import type { SessionStore } from '../store/store.js'
import { type InboxHolder, inboxHolders } from './inbox-holders.js'
import {
  isQueuedText,
  parseQueuedMessage,
  type QueuedMessage,
  type QueuePosition,
  sortQueue,
  toSteeringEvent,
} from './queued-message.js'
import { parseInboxMessage } from './session-message.js'
import { addKey } from '../fold-session.js'

/** Told of a message by its number; the event is null when the text is not one of ours. */
type Listener = (message: number, event: ControlEvent | null) => void

type QueueListener = (queued: QueuedMessage) => void

interface ReadMessage {
  message: number
  event: ControlEvent | null
}

/** Where a session stands whose inbox is read. */
interface InboxReaderParts {
  clock: Clock
  /** The last message that is in its log, and the idempotency keys of the last ones. */
  applied: number
  keys: readonly string[]
  /** The last queued message that a run began with. */
  queued: number
  /** The last message of its inbox, as the store told it when the session was acquired. */
  found: number | undefined
  /** Settles when what has happened so far is durable, and the session is still ours; rejects where it is not. */
  confirmHeld: () => Promise<void> | undefined
}

/**
 * The inbox of one session, read by its holder: each message is handed over once, in order, and removed once what
 * it has come to is durable. A message that is in the log already was handed over by a process that died before it could
 * remove it. Queued messages stay where they are: the next turn begins with the first of them.
 */
export class InboxReader implements InboxHolder {
  readonly sessionId: string
  readonly #store: SessionStore
  readonly #clock: Clock
  /** The last message that was in the log when the session was acquired. */
  readonly #before: number
  /** The last message that is in the log, applied. */
  #applied: number
  /** The last one that was handed over. */
  #lastDelivered: number
  /** Handed over, and neither applied nor refused yet. */
  readonly #open = new Set<number>()
  /** Of those that were handed over, user messages. */
  readonly #steering = new Set<number>()
  /** In the log, and to be removed with the next write. */
  #done: number[] = []
  /** The idempotency keys of the last messages that are in the log. */
  #keys: readonly string[]
  /** Those, and the keys of what was handed over. */
  readonly #seen: Set<string>
  #last = 0
  /** The last queued message that is in the log. */
  #queued: number
  #hasQueued = false
  /** The number of the last message that is there, as the store told it last; undefined where it tells nothing. */
  #position: number | undefined
  /** Whether nothing was there when the session was acquired. */
  readonly #isEmpty: boolean
  #reading: Promise<void> | undefined
  #waiting: ReadMessage[] = []
  #listener: Listener | undefined
  #onQueued: QueueListener | undefined
  #isClosed = false
  readonly #confirmHeld: InboxReaderParts['confirmHeld']

  constructor(
    store: SessionStore,
    sessionId: string,
    { clock, applied, keys, queued, found, confirmHeld }: InboxReaderParts,
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
  }

  /** What was left for the run that goes on. */
  async readFirst(): Promise<void> {
    if (!this.#isEmpty) await this.read()
  }

  /** What was left for a run that has ended is not for the next one. Queued messages are. */
  async discard(): Promise<void> {
    if (this.#isEmpty) return
    const found = (await this.#store.inbox?.read(this.sessionId)) ?? []
    const last = found.at(-1)?.message ?? 0
    this.#lastDelivered = Math.max(this.#lastDelivered, last)
    this.#forgetRead((message) => message <= last)
    const unheard = found.filter(({ text }) => !isQueuedText(text)).map(({ message }) => message)
    if (unheard.length === 0) return
    // A process that has slept since it took the session would remove what was left for a later run.
    await this.#confirmHeld()
    await this.#store.inbox?.remove(this.sessionId, unheard)
  }

  /** Whether messages may be queued: false only where the store has told that the inbox is empty. */
  get mayHaveQueued(): boolean {
    return this.#store.inbox !== undefined && this.#position !== 0
  }

  /** The first message that waits for the next turn; null when none does. `messages`: the transcript. */
  async findNext(messages: QueuePosition['messages']): Promise<QueuedMessage | null> {
    if (!this.mayHaveQueued) return null
    const found = (await this.#store.inbox?.read(this.sessionId)) ?? []
    const { waiting, settled } = sortQueue(found, { queued: this.#queued, messages, keys: this.#keys }, 1)
    this.removeDurable(settled)
    return waiting[0] ?? null
  }

  /** The run that is about to start begins with this queued message: it is not for the run at work besides. */
  beginWith(queued: number): void {
    this.#queued = queued
    this.#forgetRead((message) => message === queued)
  }

  /** What was read between runs, and has not been handed over, is not handed over to the next one. */
  #forgetRead(isIt: (message: number) => boolean): void {
    for (const { message, event } of this.#waiting.filter((read) => isIt(read.message))) {
      this.#open.delete(message)
      if (event?.key !== undefined) this.#seen.delete(event.key)
    }
    this.#waiting = this.#waiting.filter(({ message }) => !isIt(message))
  }

  /** A run begins with messages of these ids, and perhaps a queued one: the log says so, though perhaps not durably yet. */
  markSaid(queued: number | undefined, ids: readonly string[]): void {
    for (const id of ids) this.#keys = addKey(this.#keys, id)
    if (queued !== undefined) this.#done.push(queued)
  }

  /** The last queued message that the log has. */
  get queued(): number {
    return this.#queued
  }

  /** The number of the last message that the log has. */
  get applied(): number {
    return this.#applied
  }

  /** The idempotency keys of the last messages that the log has. */
  get keys(): readonly string[] {
    return this.#keys
  }

  /** Whether a message was handed over, or is about to be, and has not come to anything yet. */
  get hasOpenMessages(): boolean {
    return this.#open.size > 0 || this.#reading !== undefined
  }

  /** Each message from now on, and those that were read before. */
  onMessage(listener: Listener): void {
    this.#listener = listener
    for (const message of this.#waiting.splice(0)) this.#deliver(message)
  }

  /** Told of each message that is queued from now on, while the run has the session. */
  onQueued(listener: QueueListener): void {
    this.#onQueued = listener
  }

  /** The session is ours: messages are asked for. */
  startPolling(): void {
    if (this.#store.inbox) inboxHolders.get(this.#store, this.#clock).add(this)
  }

  stopPolling(): void {
    if (this.#store.inbox) inboxHolders.get(this.#store, this.#clock).remove(this)
  }

  /**
   * Another process takes the session. It reads the messages that this process has not applied, those already read from the store
   * included.
   */
  close(): void {
    this.#isClosed = true
  }

  /** The answer to what was written may tell of messages. */
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
      // Told again with the next write, or by the next poll.
      this.#last = this.#lastDelivered
    })
  }

  /** Reads what is there. Undefined when it has done so. */
  read(): Promise<void> | undefined {
    const { inbox } = this.#store
    if (!inbox) return undefined
    if (this.#reading) return this.#reading.then(() => this.read())
    // Queued messages stay, and are not read again with each new one.
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
      if (isQueuedText(found.text)) {
        const steering = toSteeringEvent(found)
        if (steering === null) this.#receiveQueued(found)
        else this.#receiveSteering(found.message, steering)
        continue
      }
      // A process that died could not remove it.
      if (found.message <= this.#before) this.#remove([found.message])
      else if (found.message <= this.#applied) this.#done.push(found.message)
      else if (found.message > this.#lastDelivered) {
        this.#lastDelivered = found.message
        this.#last = Math.max(this.#last, found.message)
        this.#receiveNew({ message: found.message, event: parseInboxMessage(found) })
      }
    }
  }

  /** A user message for the run at work. What no run reads waits for the next turn. */
  #receiveSteering(message: number, event: ControlEvent): void {
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

  /** A sender that did not learn of its delivery leaves the message once more. */
  #receiveNew(read: ReadMessage): void {
    const key = read.event?.key
    if (key !== undefined && this.#seen.has(key)) {
      this.#remove([read.message])
      return
    }
    if (key !== undefined) this.#seen.add(key)
    this.#open.add(read.message)
    if (this.#listener) this.#deliver(read)
    else this.#waiting.push(read)
  }

  #deliver({ message, event }: ReadMessage): void {
    this.#listener?.(message, event)
  }

  /** The log has it, though perhaps not durably yet. */
  markApplied(message: number, key?: string): void {
    this.#keys = addKey(this.#keys, key)
    this.#applied = Math.max(this.#applied, message)
    if (this.#open.delete(message)) this.#done.push(message)
  }

  /** The run cannot take it. A user message waits for the next turn; of others this is the end: returns whether it is one. */
  refuse(message: number): boolean {
    if (!this.#open.delete(message) || this.#steering.has(message)) return false
    if (!this.#isClosed) void this.#removeRefused(message)
    return true
  }

  /**
   * The run here cannot take it. A process that has slept, or whose last record is not written yet, may be mistaken: where
   * it does not hold the session any more, the message stays for the process that does.
   */
  async #removeRefused(message: number): Promise<void> {
    try {
      await this.#confirmHeld()
      this.#remove([message])
    } catch {
      // As above.
    }
  }

  /** What is in the log so far: to be removed once that is durable. */
  takeApplied(): number[] {
    return this.#done.splice(0)
  }

  /** What of the inbox is durable in the log needs to be kept no longer. */
  removeDurable(settled: readonly number[]): void {
    if (settled.length > 0) this.#remove(settled)
  }

  /** Never fails: what cannot be removed now is skipped when it is read again. */
  #remove(messages: readonly number[]): void {
    try {
      const removed = this.#store.inbox?.remove(this.sessionId, messages)
      if (removed instanceof Promise) removed.catch(() => undefined)
    } catch {
      // As above.
    }
  }
}
