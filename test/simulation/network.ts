import type {
  AppendOptions,
  Lease,
  LogRecord,
  SessionStore,
  SessionSummary,
} from '../../src/core/sessions/store/store.js'
import type { SessionTimers } from '../../src/core/sessions/store/timers.js'
import { StoreError } from '../../src/core/sessions/store/store-error.js'
import type { Faults } from './faults.js'
import type { Plan, Point } from './plan.js'
import type { SharedStore } from './shared-store.js'
import type { Life, World } from './world.js'

/** Never settles, because the waiting process is dead or the response is lost. */
const never = (): Promise<never> => new Promise(() => undefined)

const refusal = (): StoreError => new StoreError('store_unavailable', 'The store cannot be reached.')

/** The connection from one process life to the store, with latency and lost messages. */
export function connect(
  world: World,
  life: Life,
  { shared, faults, plan }: { shared: SharedStore; faults: Faults; plan: Plan['store'] },
): SessionStore {
  const latency = (): number => world.between(`way ${life.name}`, 0, plan.slowest) + faults.delay

  /** Sends an operation to the store, with its log description. */
  const ask = <Value>(
    point: Exclude<Point, 'request' | 'effect'>,
    what: string,
    work: () => Value,
    tell: (value: Value) => string = () => 'ok',
  ): Value | Promise<Value> => {
    if (!life.isAlive) return never()
    const loss = faults.lossOf(point)
    if (loss !== null) world.trouble('store', `is to lose what ${life.name} asks`)
    const apply = (): Value => {
      try {
        const value = work()
        world.tell(life.name, `${what} → ${tell(value)}`)
        return value
      } catch (error) {
        world.tell(life.name, `${what} → ${error instanceof StoreError ? error.code : String(error)}`)
        throw error
      }
    }
    if (plan.sync) {
      const strikes = faults.strike(point, life)
      strikes('before')
      if (!life.isAlive) return never()
      if (loss !== null && !loss.endsWith('reply')) {
        world.tell(life.name, `${what} → refused`)
        throw refusal()
      }
      const value = apply()
      strikes('after')
      if (!life.isAlive) return never()
      if (loss?.endsWith('reply')) {
        world.tell(life.name, `the answer to ${what} is lost`)
        throw refusal()
      }
      return value
    }
    return new Promise<Value>((resolve, reject) => {
      const back = (settle: () => void, ms = latency()): void => void world.after(ms, life, settle)
      const strikes = faults.strike(point, life)
      strikes('before')
      if (!life.isAlive) return
      const way = latency() + (loss === 'late request' ? 45_000 : 0)
      world.after(way, null, () => {
        // A request sent before a process died may still arrive.
        if (!life.isAlive && world.draw('in flight') < 0.5) return
        if (loss === 'refused' || loss === 'lost request') {
          world.tell(life.name, `${what} → ${loss}`)
          if (loss === 'refused') back(() => reject(refusal()))
          return
        }
        let settle: () => void
        try {
          const value = apply()
          settle = () => resolve(value)
        } catch (error) {
          settle = () => reject(error as Error)
        }
        strikes('after')
        if (loss === 'lost reply') settle = () => reject(refusal())
        if (loss?.endsWith('reply'))
          world.tell(life.name, `the answer to ${what} is ${loss === 'late reply' ? 'late' : 'lost'}`)
        if (loss !== 'no reply') back(settle, latency() + (loss === 'late reply' ? 45_000 : 0))
      })
    })
  }

  const { store } = shared
  const { timers } = store
  const connectedTimers: SessionTimers = {
    get: (id) => ask('timers', `looks at the timer ${id}`, () => timers.get(id)),
    set: (list) => ask('timers', `sets ${list.map(({ id }) => id).join(', ')}`, () => timers.set(list)),
    listDue: (options) =>
      ask(
        'timers',
        'asks what is due',
        () => timers.listDue(options),
        (due) => due.timers.map(({ id }) => id).join(', ') || 'nothing',
      ),
    list: (options) => ask('timers', 'lists timers', () => timers.list(options)),
    move: (step) =>
      ask(
        'timers',
        `${step.to === null ? 'removes' : 'moves'} ${step.id}`,
        () => timers.move(step),
        (isMoved) => (isMoved ? 'ok' : 'it is elsewhere'),
      ),
  }
  const connected: SessionStore = {
    acquire: (session, options) =>
      ask('acquire', `acquires ${session}`, () => shared.acquire(life, session, options)),
    renew: (lease, ttlMs) => ask('renew', `renews ${lease.sessionId}`, () => shared.renew(lease, ttlMs)),
    release: (lease) => ask('release', `releases ${lease.sessionId}`, () => shared.release(lease)),
    append: (
      lease: Lease,
      records: readonly LogRecord[],
      summary?: SessionSummary,
      options: AppendOptions = {},
    ) => {
      const from = records[0]?.seq ?? 0
      let words: string[] = []
      return ask(
        'append',
        `writes ${records.length === 0 ? 'a summary' : `records ${from}–${from + records.length - 1}`} of ${lease.sessionId}`,
        () => {
          const done = shared.append(life, lease, records, summary, plan.releasesInAppend ? options : {})
          words = done.words
          return done.answer
        },
        (answer) => `${words.join('; ') || 'ok'}${answer?.released ? ', and releases it' : ''}`,
      )
    },
    read: (session, range) =>
      ask(
        'read',
        `reads ${session}`,
        () => store.read(session, range),
        (found) => `${found.length} records`,
      ),
    get: (session) => ask('get', `looks at ${session}`, () => store.get(session)),
    list: (options) => ask('get', 'lists sessions', () => store.list(options)),
    delete: (session) => ask('get', `deletes ${session}`, () => store.delete(session)),
    close: () => undefined,
    timers: connectedTimers,
    inbox: {
      put: (session, text) =>
        ask(
          'put',
          `puts ${text.slice(0, 60)} into ${session}`,
          () => shared.put(session, text),
          ({ message }) => `message ${message}`,
        ),
      read: (session, after) =>
        ask(
          'inbox',
          `reads the inbox of ${session}`,
          () => store.inbox.read(session, after),
          (found) =>
            found.length === 0 ? 'nothing' : found.map(({ message }) => `message ${message}`).join(', '),
        ),
      remove: (session, messages) =>
        ask('remove', `removes ${messages.join(', ')} from the inbox of ${session}`, () =>
          shared.remove(session, messages),
        ),
      findUnread: (sessions) =>
        ask('unread', `asks for messages`, () =>
          (store.inbox.listUnread?.() ?? []).filter(({ sessionId }) => sessions.includes(sessionId)),
        ),
    },
  }
  if (plan.renewsAll)
    connected.renewAll = (leases, ttlMs) =>
      ask('renew', `renews ${leases.map(({ sessionId }) => sessionId).join(', ')}`, () =>
        leases.flatMap((lease) => {
          try {
            return [shared.renew(lease, ttlMs)]
          } catch {
            return []
          }
        }),
      )
  return connected
}
