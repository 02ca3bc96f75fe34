import type { MaybePromise, Synchronous } from '../../base/maybe-promise.js'
import type { StepMark } from './step-marks.js'
import type { AgentState, Reason } from '../../../../machines/agent/run-result.js'
import type { BudgetStore } from '../../budgets/budget-store.js'
import type { InboxPosition, SessionInbox, SyncSessionInbox } from './inbox.js'
import type { ListOptions, ReadRange } from './list-options.js'
export type { ReadRange } from './list-options.js'
import type { SessionTags } from './session-tags.js'
import type { SessionTimers, SyncSessionTimers } from './timers.js'

/** A record of a session's log. Stores keep it unchanged. Only the log interprets `data` and verifies `check`. */
export interface LogRecord {
  /** 1, 2, 3, … without gaps within a session. */
  seq: number
  /** Milliseconds since the epoch. */
  at: number
  /** Type of the record. For a reader, a `snapshot` replaces all records before it. */
  type: 'opened' | 'start' | 'event' | 'snapshot'
  /** JSON text. */
  data: string
  /** A checksum of the other fields. */
  check: string
}

/** The right to write to one session for a limited time. */
export interface Lease {
  /** The session to write to. */
  sessionId: string
  /** Unique per lease. A store rejects writers whose token is not the session's latest. */
  token: string
  /** A description of the lease owner, such as `run 3f2a… in process 4711 on web-1`. */
  holder: string
  /** Milliseconds since the epoch, according to the store's clock. */
  expiresAt: number
  /** Number of the last message in the session's inbox when the lease was acquired. 0 or absent if there is none. */
  inbox?: number
  /** Number of the session's last record when the lease was acquired. Absent if unknown. */
  head?: number
}

/** Options for appending records. */
export interface AppendOptions {
  /** Also releases the session, if the store can do both atomically. The response then has `released`. */
  release?: boolean
}

/** The response to an append. */
export interface Appended extends InboxPosition {
  /** Whether the lease was released. */
  released?: boolean
}

/** A session's entry in lists, stored with the log and updated whenever it changes. Plain JSON. */
export interface SessionSummary {
  name?: string
  /** The tags of the session. Absent if there are none. */
  tags?: SessionTags
  /** For a sub-agent, the session of the run that called it. */
  parent?: string
  /** The title set by `agent.rename`. Defaults to the session's name, or to the start of the first user message. */
  title: string
  /** The state of the latest run. Null if no run has started. */
  state: AgentState | null
  /** The reason for the latest run's state. */
  reason: Reason | null
  /** The state of a machine from `statewright/durable`, such as `reviewing`. Absent for agents. */
  value?: string
  /** The time when the sleeping run wakes, in milliseconds since the epoch. Absent for an interactive run. */
  wakeAt?: number
  /** Set if the session is a fork whose run was never resumed. No host wakes or continues such a session. */
  unresumed?: true
  /** Number of runs that were started. */
  runs: number
  /** The name in `defineAgents` of the agent that started the latest run. */
  agent?: string
  /** The version of the agent, if it has one. */
  version?: string
  /** Number of messages in the transcript. */
  messages: number
  /** Total tokens of all runs. */
  totalTokens: number
  /** Total cost of all runs in USD. Null if unknown. */
  cost: number | null
}

/** A session in a list. */
export interface ListedSession {
  /** The id of the session, unique in its store. */
  id: string
  /** Milliseconds since the epoch. */
  createdAt: number
  /** The time of the last record, in milliseconds since the epoch. */
  updatedAt: number
  /** The number of the last record. */
  head: number
  /** The session's entry in lists. Null if no summary has been written. */
  summary: SessionSummary | null
  /** The process that currently writes to the session, or null. */
  holder: string | null
  /** Marks set by people, in record order. Absent if there are none. */
  marks?: StepMark[]
}

/** The owner and duration of a lease. */
export interface AcquireOptions {
  /** A description of the lease owner, such as a run. A store may add the process and machine. */
  holder: string
  /** How long the lease lasts without renewal, in milliseconds. */
  ttlMs: number
}

/**
 * Session storage with an append-only log per session and one writer at a time. Methods may be synchronous or return a
 * promise. They fail with a `StoreError`.
 * @example
 * const store: SessionStore = memoryStore()
 * const readOnly: SessionStore = {
 *   ...store,
 *   append: () => {
 *     throw new StoreError('read_only', 'This store only reads.')
 *   },
 * }
 */
export interface SessionStore {
  /**
   * Acquires the right to write to a session, which does not have to exist.
   * @example
   * const lease = await memoryStore().acquire('ann', { holder: 'me', ttlMs: 30_000 })
   * @throws {StoreError} `session_busy`, naming the holder, while another lease is valid and its holder is not known to
   * have exited
   */
  acquire(sessionId: string, options: AcquireOptions): MaybePromise<Lease>
  /**
   * Extends a lease to `ttlMs` from now, even if it has expired, unless another process has acquired the session.
   * @example
   * const store = memoryStore()
   * const lease = await store.renew(await store.acquire('ann', { holder: 'me', ttlMs: 30_000 }), 30_000)
   * @throws {StoreError} `lease_lost`
   */
  renew(lease: Lease, ttlMs: number): MaybePromise<Lease>
  /**
   * Extends many leases at once, as `renew` does for one. Returns those that are not lost, with their new expiry.
   * @example
   * const store = memoryStore()
   * const kept = (await store.renewAll?.([await store.acquire('ann', { holder: 'me', ttlMs: 30_000 })], 30_000)) ?? []
   */
  renewAll?(leases: readonly Lease[], ttlMs: number): MaybePromise<Lease[]>
  /**
   * Releases the session. A lost lease is not an error.
   * @example
   * const store = memoryStore()
   * await store.release(await store.acquire('ann', { holder: 'me', ttlMs: 30_000 }))
   */
  release(lease: Lease): MaybePromise<InboxPosition | void>
  /**
   * Appends all or none of the records. They are durable when `append` returns or resolves. A summary replaces the last.
   * @example
   * const store = memoryStore()
   * const lease = await store.acquire('ann', { holder: 'me', ttlMs: 30_000 })
   * await store.append(lease, [{ seq: 1, at: 0, type: 'opened', data: '{"version":1}', check: '…' }])
   * @throws {StoreError} `lease_lost` for a lease that has expired or is not the session's latest, `out_of_order` for
   * records that do not follow the log's head, `disk_full`, `read_only`, `store_unavailable`
   */
  append(
    lease: Lease,
    records: readonly LogRecord[],
    summary?: SessionSummary,
    options?: AppendOptions,
  ): MaybePromise<Appended | void>
  /**
   * Reads the records in order. Returns an empty list if the session does not exist.
   * @example
   * const records = await memoryStore().read('ann', { from: 1, to: 12 })
   */
  read(sessionId: string, range?: ReadRange): MaybePromise<LogRecord[]>
  /**
   * Returns one session in the format of `list`, or null if the session does not exist or has no record.
   * @example
   * const listed = await memoryStore().get('ann') // null
   */
  get(sessionId: string): MaybePromise<ListedSession | null>
  /**
   * Lists the sessions with at least one record, last written first. By default, sub-agent sessions are omitted.
   * @example
   * for (const { id, summary } of await memoryStore().list({ limit: 20 })) console.log(id, summary?.state)
   * @throws {UsageError} `invalid_option` for invalid options
   */
  list(options?: ListOptions): MaybePromise<ListedSession[]>
  /**
   * Deletes a session with all its records. Returns false if the session does not exist.
   * @example
   * const wasThere = await memoryStore().delete('ann') // false
   * @throws {StoreError} `session_busy` while a process writes to it
   */
  delete(sessionId: string): MaybePromise<boolean>
  /**
   * Sets or removes (null) the title of a session. `get` and `list` return it as the summary's `title`, despite later
   * appends. Requires no lease and does not count as a write. Returns false if the session has no record.
   * @example
   * const wasThere = await memoryStore().setTitle?.('ann', 'The trip to Lisbon') // false
   */
  setTitle?(sessionId: string, title: string | null): MaybePromise<boolean>
  /**
   * Sets or removes (null) the mark of a record. `get` and `list` return the marks. Requires no lease and does not count
   * as a write. Returns false if the session has no such record.
   * @example
   * const mark = { seq: 3, mark: 'bad', note: 'The wrong invoice.', at: Date.now() } as const
   * const wasThere = await memoryStore().setMark?.('ann', 3, mark) // false
   */
  setMark?(sessionId: string, seq: number, mark: StepMark | null): MaybePromise<boolean>
  /**
   * Overwrites the remains of deleted sessions in the store's files, if there are any. Called after deletions.
   * @example
   * await memoryStore().purge?.()
   */
  purge?(): MaybePromise<void>
  /**
   * Closes files and connections. The store is not used afterwards.
   * @example
   * await memoryStore().close()
   */
  close(): MaybePromise<void>
  /**
   * Opens the budgets that several runs share (`statewright/fleet`). Always returns the same object and creates its
   * storage on first use. A store without this method has no budgets.
   * @example
   * const budgets = await memoryStore().openBudgets?.()
   */
  openBudgets?(): MaybePromise<BudgetStore>
  /** The inboxes to which `agent.send` delivers messages. A store without inboxes accepts no messages. */
  readonly inbox?: SessionInbox | undefined
  /** The timers that wake sleeping sessions. Optional in a custom store. */
  readonly timers?: SessionTimers | undefined
}

/** A synchronous session store. Records are durable when `append` returns. */
export type SyncSessionStore = Synchronous<Omit<SessionStore, 'inbox' | 'timers' | 'openBudgets'>> &
  Pick<SessionStore, 'openBudgets'> & {
    readonly inbox: SyncSessionInbox
    readonly timers: SyncSessionTimers
  }
