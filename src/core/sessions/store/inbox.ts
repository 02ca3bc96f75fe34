type MaybePromise<Value> = Value | Promise<Value>

/** A message in the inbox of a session, until the process that runs the session takes it. */
export interface InboxMessage {
  /** 1, 2, 3, … within a session; no number is used twice. */
  message: number
  /** Milliseconds since the epoch, by the store's clock. */
  at: number
  /** JSON text. */
  text: string
}

/** What a message came to that was put into an inbox. */
export interface Delivery {
  /** Its number. */
  message: number
  /** The holder of the session at that moment; null when no process held it. */
  holder: string | null
}

/** Whether the inbox of a session has messages, for the holder of the session. */
export interface UnreadInbox {
  sessionId: string
  /** The number of the last message that is still there. */
  inbox: number
}

/**
 * What a store tells a session's holder along with what was asked of it: the number of the last message that is still in
 * the session's inbox, 0 when there is none. Stores of your own that have no inbox tell nothing.
 */
export interface InboxPosition {
  inbox: number
}

/**
 * Where `agent.send` leaves messages for a session, beside its log. A message and the holder that it finds are one:
 * the holder of the session when a message is put there learns of it from the answer to its next `append` or `release`
 * at the latest.
 */
export interface SessionInbox {
  /**
   * Adds a message; it is durable when this returns, or resolves.
   *
   * @example
   * const stop = (store: SessionStore, id: string) => store.inbox?.put(id, '{"type":"CANCEL"}')
   * @throws {StoreError} `unknown_session` where the session has no record
   */
  put(sessionId: string, text: string): MaybePromise<Delivery>
  /**
   * What is there, in order: of the messages after the number `after`, where a store can leave out the others.
   *
   * @example
   * const messages = await memoryStore().inbox.read('ann') // []
   */
  read(sessionId: string, after?: number): MaybePromise<InboxMessage[]>
  /**
   * Removes messages by their numbers. Those that are gone are no error.
   *
   * @example
   * await memoryStore().inbox.remove('ann', [1, 2])
   */
  remove(sessionId: string, messages: readonly number[]): MaybePromise<void>
  /**
   * Those of the sessions in whose inboxes something is. Asked once a second for all sessions that a process holds;
   * absent in a store that no other process can reach.
   *
   * @example
   * for (const { sessionId, inbox } of (await memoryStore().inbox.findUnread?.(['ann', 'ben'])) ?? []) console.log(sessionId, inbox)
   */
  findUnread?(sessionIds: readonly string[]): MaybePromise<UnreadInbox[]>
  /**
   * Every session in whose inbox something is, held or not. A host asks once a second, and continues those that rest; a store
   * without it is asked page by page, with `list` and `findUnread`.
   *
   * @example
   * for (const { sessionId } of (await memoryStore().inbox.listUnread?.()) ?? []) console.log(sessionId)
   */
  listUnread?(): MaybePromise<UnreadInbox[]>
}

/** An inbox that answers at once. */
export interface SyncSessionInbox extends SessionInbox {
  put(sessionId: string, text: string): Delivery
  read(sessionId: string, after?: number): InboxMessage[]
  remove(sessionId: string, messages: readonly number[]): void
  findUnread?(sessionIds: readonly string[]): UnreadInbox[]
  listUnread?(): UnreadInbox[]
}
