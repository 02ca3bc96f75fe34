import type { AgentState, Reason } from '../../../../machines/agent/run-result.js'
import type { BudgetStore } from '../../budgets/budget-store.js'
import type { InboxPosition, SessionInbox, SyncSessionInbox } from './inbox.js'
import type { ListOptions, ReadRange } from './list-options.js'
export type { ReadRange } from './list-options.js'
import type { SessionTags } from './session-tags.js'
import type { SessionTimers, SyncSessionTimers } from './timers.js'

/**
 * One record of a session's log. Stores keep records as they are: what `data` means, and whether `check` is right, is
 * the log's business.
 */
export interface LogRecord {
  /** 1, 2, 3, … without gaps within a session. */
  seq: number
  /** Milliseconds since the epoch. */
  at: number
  /** What kind of record it is; `snapshot` sums up all before it. */
  type: 'opened' | 'start' | 'event' | 'snapshot'
  /** JSON text. */
  data: string
  /** A checksum of the others. */
  check: string
}

/** The right to write to one session, for a time. */
export interface Lease {
  /** The session that may be written to. */
  sessionId: string
  /** New with every lease: a store refuses a writer whose token is not the session's latest. */
  token: string
  /** Who holds it, in words for people: `run 3f2a… in process 4711 on web-1`. */
  holder: string
  /** Milliseconds since the epoch, by the store's clock. */
  expiresAt: number
  /** When it was acquired: the number of the last message in the session's inbox; 0 or absent when there was none. */
  inbox?: number
  /** When it was acquired: the number of the session's last record. 0 spares a reader the question; absent: not known. */
  head?: number
}

/** What else an append does. */
export interface AppendOptions {
  /**
   * Gives the session free along with the write, where the store can do both as one: then it says `released`. A store that
   * cannot leaves it, and is asked to `release`.
   */
  release?: boolean
}

/** What a store tells of an append. */
export interface Appended extends InboxPosition {
  /** The lease is given back, as by `release`. */
  released?: boolean
}

/** What a list of sessions tells; written beside the log whenever it changes. Plain JSON. */
export interface SessionSummary {
  name?: string
  /** What runs have given the session to be found by. Absent: nothing. */
  tags?: SessionTags
  /** Of a sub-agent's session: the session of the run that called it. */
  parent?: string
  /** The title that `agent.rename` gave; default: its name, or the beginning of the first user message. */
  title: string
  /** Of the latest run. Null: none has started. */
  state: AgentState | null
  /** Of the latest run. */
  reason: Reason | null
  /** When the latest run is to be woken, which sleeps: milliseconds since the epoch. Absent in an interactive run. */
  wakeAt?: number
  /** The session is a fork, and nobody has resumed its run yet: no host wakes it or takes it over. */
  unresumed?: true
  /** How many have started. */
  runs: number
  /** The agent that began the latest run, as `defineAgents` calls it. */
  agent?: string
  /** The version of that agent, if it has one. */
  version?: string
  /** In the transcript. */
  messages: number
  /** Of all runs. */
  totalTokens: number
  /** Of all runs, in USD; null when it is not known. */
  cost: number | null
}

/** A session in a list. */
export interface ListedSession {
  /** Unique in its store. */
  id: string
  /** Milliseconds since the epoch. */
  createdAt: number
  /** Of the last record; milliseconds since the epoch. */
  updatedAt: number
  /** The number of its last record. */
  head: number
  /** Null when none was written yet. */
  summary: SessionSummary | null
  /** The process that writes to it now; null when none does. */
  holder: string | null
}

/** Who wants to write, and for how long. */
export interface AcquireOptions {
  /** Who asks, in words for people: a run, for example. A store adds the process and machine where it knows them. */
  holder: string
  /** How long the lease lasts unless it is renewed, in milliseconds. */
  ttlMs: number
}

type MaybePromise<Value> = Value | Promise<Value>

/**
 * Where sessions are kept: an append-only log for each, with one writer at a time. A store may answer at once or with
 * a promise; what it cannot do, it says with a `StoreError`.
 *
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
   * The right to write to a session, which need not exist yet.
   *
   * @example
   * const lease = await memoryStore().acquire('ann', { holder: 'me', ttlMs: 30_000 })
   * @throws {StoreError} `session_busy`, naming the holder, while another lease lasts and its holder is not known to be
   * gone
   */
  acquire(sessionId: string, options: AcquireOptions): MaybePromise<Lease>
  /**
   * Lets a lease last for another `ttlMs` from now, also when it has run out and no other process has acquired the session since.
   *
   * @example
   * const store = memoryStore()
   * const lease = await store.renew(await store.acquire('ann', { holder: 'me', ttlMs: 30_000 }), 30_000)
   * @throws {StoreError} `lease_lost`
   */
  renew(lease: Lease, ttlMs: number): MaybePromise<Lease>
  /**
   * The same for many leases at once: those that are still the latest, with when they run out now; the others are lost. A
   * store without it is asked for one after the other.
   *
   * @example
   * const store = memoryStore()
   * const kept = (await store.renewAll?.([await store.acquire('ann', { holder: 'me', ttlMs: 30_000 })], 30_000)) ?? []
   */
  renewAll?(leases: readonly Lease[], ttlMs: number): MaybePromise<Lease[]>
  /**
   * Gives the session free. A lease that is lost already is no error.
   *
   * @example
   * const store = memoryStore()
   * await store.release(await store.acquire('ann', { holder: 'me', ttlMs: 30_000 }))
   */
  release(lease: Lease): MaybePromise<InboxPosition | void>
  /**
   * Adds records to the end of the log, all or none; they are durable when this returns, or resolves. A summary
   * replaces the last one.
   *
   * @example
   * const store = memoryStore()
   * const lease = await store.acquire('ann', { holder: 'me', ttlMs: 30_000 })
   * await store.append(lease, [{ seq: 1, at: 0, type: 'opened', data: '{"version":1}', check: '…' }])
   * @throws {StoreError} `lease_lost` for a lease that is not the session's latest or has run out, `out_of_order` for
   * records that do not follow its head, `disk_full`, `read_only`, `store_unavailable`
   */
  append(
    lease: Lease,
    records: readonly LogRecord[],
    summary?: SessionSummary,
    options?: AppendOptions,
  ): MaybePromise<Appended | void>
  /**
   * The records in order; none for a session that does not exist.
   *
   * @example
   * const records = await memoryStore().read('ann', { from: 1, to: 12 })
   */
  read(sessionId: string, range?: ReadRange): MaybePromise<LogRecord[]>
  /**
   * One session, as `list` tells it; null when there is none, or none that has a record.
   *
   * @example
   * const listed = await memoryStore().get('ann') // null
   */
  get(sessionId: string): MaybePromise<ListedSession | null>
  /**
   * The sessions with at least one record, the one written last first. Default: all of them but those of sub-agents.
   *
   * @example
   * for (const { id, summary } of await memoryStore().list({ limit: 20 })) console.log(id, summary?.state)
   * @throws {UsageError} `invalid_option` for options that make no sense
   */
  list(options?: ListOptions): MaybePromise<ListedSession[]>
  /**
   * Deletes a session with all its records; false when there was none.
   *
   * @example
   * const wasThere = await memoryStore().delete('ann') // false
   * @throws {StoreError} `session_busy` while a process writes to it
   */
  delete(sessionId: string): MaybePromise<boolean>
  /**
   * Gives a session a title, which `get` and `list` tell as the `title` of its summary, whatever is appended afterwards; null takes it
   * back. Needs no lease, and does not count as a write. False for a session without a record. A store without it cannot rename
   * sessions.
   *
   * @example
   * const wasThere = await memoryStore().setTitle?.('ann', 'The trip to Lisbon') // false
   */
  setTitle?(sessionId: string, title: string | null): MaybePromise<boolean>
  /**
   * Overwrites what deleted sessions have left where the store keeps its data. Asked after agents have deleted sessions. A store
   * without it leaves nothing, or leaves this to its server.
   *
   * @example
   * const store = memoryStore()
   * await store.delete('ann')
   * await store.purge?.()
   */
  purge?(): MaybePromise<void>
  /**
   * Gives back what the store holds: files, connections. It is not used afterwards.
   *
   * @example
   * await memoryStore().close()
   */
  close(): MaybePromise<void>
  /**
   * Where budgets are kept that several runs share (`statewright/fleet`). Always the same; what it needs is made when it is first
   * asked for. A store without it keeps none.
   *
   * @example
   * const budgets = await memoryStore().openBudgets?.()
   */
  openBudgets?(): MaybePromise<BudgetStore>
  /** Where `agent.send` leaves messages. A store without it takes none. */
  readonly inbox?: SessionInbox | undefined
  /** What is to be done at a time: sleeping sessions need it. A store of your own may leave it out. */
  readonly timers?: SessionTimers | undefined
}

/** A session store that answers at once: when `append` returns, its records are durable. */
export type SyncSessionStore = {
  [Method in Exclude<
    keyof SessionStore,
    'inbox' | 'timers' | 'renewAll' | 'setTitle' | 'purge' | 'openBudgets'
  >]: (...args: Parameters<SessionStore[Method]>) => Awaited<ReturnType<SessionStore[Method]>>
} & {
  readonly inbox: SyncSessionInbox
  readonly timers: SyncSessionTimers
  renewAll?(leases: readonly Lease[], ttlMs: number): Lease[]
  setTitle?(sessionId: string, title: string | null): boolean
  purge?(): void
  openBudgets?(): MaybePromise<BudgetStore>
}
