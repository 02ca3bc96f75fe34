import type pg from 'pg'
import { expectArgument, memoize, objectRule } from '../../core/base/values.js'
import { systemClock } from '../../core/base/clock.js'
import { configError } from '../../core/base/errors.js'
import { loadOnce, loadPeer, createId } from '../../core/base/platform.js'
import { releaseLater } from '../../core/sessions/log/lease.js'
import {
  describeHolder,
  isProcessGone,
  getProcessIdentity,
} from '../../core/sessions/store/process-identity.js'
import { checkSessionId, isSessionId } from '../../core/sessions/store/session-id.js'
import { checkListOptions, type Listing, resolveRange } from '../../core/sessions/store/list-options.js'
import {
  checkFollows,
  checkRecords,
  getExpiry,
  leaseLostError,
  sessionBusyError,
  StoreError,
  unknownSessionError,
} from '../../core/sessions/store/store-error.js'
import type { InboxMessage, UnreadInbox } from '../../core/sessions/store/inbox.js'
import type { Appended, Lease, LogRecord, SessionStore } from '../../core/sessions/store/store.js'
import { offerDigests } from '../../core/sessions/store/log-digests.js'
import {
  type EntryRow,
  findHolder,
  groupAppends,
  type PendingAppend,
  type Query,
  readRows,
  type SessionRow,
  toAppendValues,
  toColumns,
  toListedSession,
} from './postgres-rows.js'
import {
  describePlace,
  isStatementRefused,
  prepareSchema,
  toPostgresError,
  createStatements,
} from './postgres-statements.js'
import { createPostgresTimers, openPostgresBudgets, openPostgresDigests } from './postgres-tables.js'

/** The connection and the schema. */
export type PostgresStoreOptions = (
  | { /** `postgres://USER:PASSWORD@HOST:PORT/DATABASE` */ connectionString: string }
  | { /** A `Pool` from the package `pg`. `close` leaves it open. */ pool: pg.Pool }
) & {
  /** The schema, created on first use: lower-case letters, digits and `_`. Defaults to `statewright`. */
  schema?: string
  /** Returns milliseconds since the epoch. Defaults to the server's clock, on which all machines agree. */
  now?: () => number
}

/** Timeout for connections and queries, so that a hanging server does not block runs. */
const connectMs = 10_000
const answerMs = 30_000

/**
 * Sessions in Postgres, for any number of processes and machines. Connects on first use and reconnects. An append takes
 * one round trip. The durability of an append depends on the server's `synchronous_commit`. Needs the package `pg`.
 * @throws {ConfigError} for invalid options
 * @example
 * const store = postgresStore({ connectionString: 'postgres://localhost/app' })
 */
export function postgresStore(options: PostgresStoreOptions): SessionStore {
  expectArgument('postgresStore(options)', options, objectRule([], 'an object with connectionString or pool'))
  const { now, schema = 'statewright' } = options
  checkPostgresOptions(options, schema)
  const place = describePlace(options)
  const sql = createStatements(schema)
  let opened: Promise<pg.Pool> | null = null
  let isClosed = false

  const open = async (): Promise<pg.Pool> => {
    const pool = 'pool' in options ? options.pool : await makePool(options.connectionString)
    guardPool(pool)
    try {
      await prepareSchema(pool, schema)
      return pool
    } catch (error) {
      if (!('pool' in options)) void pool.end().catch(() => undefined)
      throw error
    }
  }

  const query: Query = async <Row extends object>(text: string, values: unknown[]): Promise<Row[]> => {
    if (isClosed)
      throw new StoreError('store_unavailable', `The store ${place} is closed. Open it again.`, place)
    try {
      opened ??= open()
      const pool = await opened.catch((error: unknown) => {
        opened = null
        throw error
      })
      return readRows(await pool.query<Row & pg.QueryResultRow>(text, values))
    } catch (error) {
      throw toPostgresError(error, place, schema)
    }
  }

  const time = () => (now ? Math.floor(now()) : null)
  /** Postgres rejects characters such as NUL. */
  const ofSession = async <Row extends object>(text: string, id: string, ...values: unknown[]) =>
    isSessionId(id) ? query<Row>(text, [id, ...values]) : []
  const sessionOf = async (id: string) => (await ofSession<SessionRow>(sql.session, id, time()))[0]

  /** Puts the rarest tag first, because the sessions of the first tag are scanned. */
  const sortTags = async (tags: Listing['tags']): Promise<Listing['tags']> => {
    if (tags.length <= 1) return tags
    const rows = await query<{ name: string; value: string }>(sql.sortTags, toColumns(tags, [0, 1]))
    return rows.map(({ name, value }) => [name, value])
  }

  const write = async (group: readonly PendingAppend[]): Promise<void> => {
    const rows = await query<Appended & { id: string }>(sql.append, toAppendValues(group, time()))
    const appended = new Map(
      rows.map(({ id, inbox, released }) => [id, { inbox, ...(released && { released }) }]),
    )
    for (const one of group) one.settle(appended.get(one.lease.sessionId) ?? null)
  }

  const alone = (append: PendingAppend): Promise<void> =>
    write([append]).catch((error: unknown) => append.fail(error))

  const append = groupAppends(async (group) => {
    try {
      await write(group)
    } catch (error) {
      // A refused statement has written nothing. The appends are retried one by one, so that a bad one does not make
      // the others fail.
      const isRefused = group.length > 1 && isStatementRefused(error)
      if (isRefused) await Promise.all(group.map(alone))
      else for (const one of group) one.fail(error)
    }
  })

  const store: SessionStore = {
    async acquire(id, { holder: words, ttlMs }) {
      const sessionId = checkSessionId(id)
      const ttl = getExpiry(0, ttlMs)
      const token = createId()
      const holder = describeHolder(words)
      const take = async (goneToken: string | null) => {
        const values = [sessionId, time(), token, holder, getProcessIdentity(), ttl, goneToken]
        const [row] = await query<Pick<Lease, 'expiresAt' | 'inbox' | 'head'>>(sql.acquire, values).catch(
          (error) => {
            // The lease may have been granted although the answer was lost.
            releaseLater(store, { sessionId, token, holder, expiresAt: 0 }, systemClock)
            throw error
          },
        )
        return row && { sessionId, token, holder, ...row }
      }
      const lease = await take(null)
      if (lease) return lease
      const row = await sessionOf(sessionId)
      const again = !row?.held || isProcessGone(row.process) ? await take(row?.token ?? null) : undefined
      if (again) return again
      throw sessionBusyError(sessionId, row?.holder ?? null)
    },

    async renew(lease, ttlMs) {
      const values = [lease.sessionId, time(), lease.token, getExpiry(0, ttlMs)]
      const [row] = await query<Pick<Lease, 'expiresAt'>>(sql.renew, values)
      if (!row) throw leaseLostError(lease)
      return { ...lease, ...row }
    },

    async renewAll(leases, ttlMs) {
      const [sessions, tokens] = toColumns(leases, ['sessionId', 'token'])
      const values = [sessions, time(), tokens, getExpiry(0, ttlMs)]
      const rows = await query<Pick<Lease, 'token' | 'expiresAt'>>(sql.renewAll, values)
      const renewed = new Map(rows.map((row) => [row.token, row]))
      return leases.flatMap((lease) => {
        const row = renewed.get(lease.token)
        return row ? [{ ...lease, ...row }] : []
      })
    },

    async release({ sessionId, token }) {
      const [row] = await query<{ inbox: number }>(sql.release, [sessionId, token])
      return row ?? { inbox: 0 }
    },

    async append(lease, records, summary, { release: isLast = false } = {}) {
      const { sessionId, token } = lease
      checkRecords(sessionId, records)
      const appended = await append({ lease, records, summary, isLast })
      if (appended) return appended
      const row = await sessionOf(sessionId)
      if (row?.held === true && row.token === token) checkFollows(sessionId, records, row.head)
      throw leaseLostError(lease)
    },

    async read(sessionId, range) {
      const whole = resolveRange(range)
      if (whole === null) return []
      const from = whole.from === 'snapshot' ? null : whole.from
      return ofSession<LogRecord>(sql.read, sessionId, from, whole.to)
    },

    async get(sessionId) {
      const [row] = await ofSession<EntryRow>(sql.get, sessionId, time())
      return row ? toListedSession(row) : null
    },

    async list(options) {
      const listing = checkListOptions(options)
      if (listing.states?.length === 0) return []
      const { text, values } = sql.list({ ...listing, tags: await sortTags(listing.tags) })
      return (await query<EntryRow>(text, [null, time(), ...values])).map(toListedSession)
    },

    async delete(sessionId) {
      const remove = async (goneToken: string | null) =>
        (await ofSession<{ head: number }>(sql.remove, sessionId, time(), goneToken))[0]
      const removed = await remove(null)
      if (removed) return removed.head > 0
      const row = await sessionOf(sessionId)
      if (row === undefined) return false
      const again = !row.held || isProcessGone(row.process) ? await remove(row.token) : undefined
      if (again) return again.head > 0
      throw sessionBusyError(sessionId, row.holder)
    },

    setTitle: async (sessionId, title) => (await ofSession(sql.setTitle, sessionId, title)).length > 0,

    setMark: async (sessionId, seq, mark) =>
      (await ofSession(sql.setMark, sessionId, seq, mark && JSON.stringify(mark))).length > 0,

    openBudgets: loadOnce(() => openPostgresBudgets(query, schema, time)),

    async close() {
      isClosed = true
      const pool = await opened?.catch(() => null)
      opened = null
      if (!('pool' in options)) await pool?.end()
    },

    inbox: {
      async put(sessionId, text) {
        const [row] = await ofSession<SessionRow & { message: number }>(sql.put, sessionId, time(), text)
        if (!row) throw unknownSessionError(sessionId)
        return { message: row.message, holder: findHolder(row) }
      },

      read: (sessionId, after = 0) => ofSession<InboxMessage>(sql.messages, sessionId, after),

      async remove(sessionId, messages) {
        await ofSession(sql.take, sessionId, messages)
      },

      findUnread: (sessionIds) => query<UnreadInbox>(sql.findUnread, [sessionIds.filter(isSessionId)]),

      listUnread: () => query<UnreadInbox>(sql.listUnread, []),
    },

    timers: createPostgresTimers(query, schema, time),
  }
  return offerDigests(store, () => openPostgresDigests(query, schema))
}

async function makePool(connectionString: string): Promise<pg.Pool> {
  const { default: driver } = await loadPeer<{ default: typeof pg }>('pg', 'The Postgres store')
  return new driver.Pool({
    connectionString,
    connectionTimeoutMillis: connectMs,
    query_timeout: answerMs,
    keepAlive: true,
    allowExitOnIdle: true,
  })
}

/** Without a listener, an idle connection's error would crash the process. The next query reconnects. */
const guardPool = memoize((pool: pg.Pool) => {
  // Pools from other packages may not emit events.
  pool.on?.('error', () => undefined)
  return true
})

function checkPostgresOptions(options: PostgresStoreOptions, schema: unknown): void {
  const { connectionString, pool } = options as { connectionString?: unknown; pool?: { query?: unknown } }
  if (
    typeof pool?.query !== 'function' &&
    (typeof connectionString !== 'string' || connectionString === '')
  ) {
    throw configError(
      'The Postgres store needs a connectionString, such as postgres://USER:PASSWORD@HOST/DATABASE, or a pool of pg.',
      'connectionString',
    )
  }
  if (typeof schema !== 'string' || !/^[a-z_][a-z0-9_]{0,62}$/.test(schema)) {
    throw configError(
      'The schema must consist of 1 to 63 lower-case letters, digits and _, and must not start with a digit.',
      'schema',
    )
  }
}
