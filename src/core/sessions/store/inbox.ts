import type { MaybePromise, Synchronous } from '../../base/maybe-promise.js'

/** A message in a session's inbox, until the process that holds the session removes it. */
export interface InboxMessage {
  /** 1, 2, 3, … within a session. Numbers are never reused. */
  message: number
  /** Milliseconds since the epoch, according to the store's clock. */
  at: number
  /** JSON text. */
  text: string
}

/** The result of adding a message to an inbox. */
export interface Delivery {
  /** The number of the message. */
  message: number
  /** The lease holder of the session at that moment, or null. */
  holder: string | null
}

/** A session whose inbox is not empty. */
export interface UnreadInbox {
  sessionId: string
  /** The number of the last message in the inbox. */
  inbox: number
}

/** Number of the last message in the inbox, or 0 if it is empty. Omitted by custom stores without an inbox. */
export interface InboxPosition {
  inbox: number
}

/**
 * The inboxes of a store, in which `agent.send` leaves messages for sessions. `put` must store the message and read the
 * holder atomically. The holder at that moment then learns of the message with its next `append` or `release` at the
 * latest.
 */
export interface SessionInbox {
  /**
   * Adds a message. The message is durable when `put` returns or resolves.
   * @example
   * const stop = (store: SessionStore, id: string) => store.inbox?.put(id, '{"type":"CANCEL"}')
   * @throws {StoreError} `unknown_session` if the session has no record
   */
  put(sessionId: string, text: string): MaybePromise<Delivery>
  /**
   * Reads the messages in order. A store may omit the messages up to number `after`.
   * @example
   * const messages = await memoryStore().inbox.read('ann') // []
   */
  read(sessionId: string, after?: number): MaybePromise<InboxMessage[]>
  /**
   * Removes messages by number. Missing messages are ignored.
   * @example
   * await memoryStore().inbox.remove('ann', [1, 2])
   */
  remove(sessionId: string, messages: readonly number[]): MaybePromise<void>
  /**
   * Returns the sessions that have messages in their inboxes. Called once a second for all sessions that a process
   * holds. Omit this method in a store that no other process can access.
   * @example
   * for (const { sessionId, inbox } of (await memoryStore().inbox.findUnread?.(['ann', 'ben'])) ?? []) console.log(sessionId, inbox)
   */
  findUnread?(sessionIds: readonly string[]): MaybePromise<UnreadInbox[]>
  /**
   * Lists all sessions with messages in their inboxes, whether held or not. A host calls it once a second and continues
   * the idle sessions. Without this method, the host pages through `list` and `findUnread`.
   * @example
   * for (const { sessionId } of (await memoryStore().inbox.listUnread?.()) ?? []) console.log(sessionId)
   */
  listUnread?(): MaybePromise<UnreadInbox[]>
}

/** A synchronous inbox. */
export type SyncSessionInbox = Synchronous<SessionInbox>
