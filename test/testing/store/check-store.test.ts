import { jest } from '@jest/globals'
import {
  type InboxMessage,
  type Lease,
  memoryStore,
  type SessionInbox,
  type SessionStore,
  StoreError,
} from '../../../src/index.js'
import { checkStore, type StorePlace } from '../../../src/testing/index.js'
import { storeChecks } from '../../../src/testing/store/check-store.js'

const inMemory = ({ now }: Pick<StorePlace, 'now'>) => memoryStore({ now })
type InMemory = ReturnType<typeof memoryStore>
const names = storeChecks.map(({ name }) => name)

/** All checks except these, skipped. */
const onlyThese = (args: readonly string[]) =>
  Object.fromEntries(names.filter((name) => !args.includes(name)).map((name) => [name, 'not asked']))

it('the store in memory passes every check, and skipped checks have a reason', async () => {
  const removed: string[] = []
  const options = {
    shared: false,
    removed,
    remove(place: string): void {
      this.removed.push(place)
    },
  }
  const { clock, checks, broken } = await checkStore(inMemory, options)
  expect({ clock, broken }).toEqual({ clock: 'given', broken: [] })
  expect(checks.map(({ name }) => name)).toEqual(names)
  const reasons = checks.flatMap(({ outcome, problem }) => (outcome === 'skipped' ? [problem] : []))
  const notShared = 'shared is false, so each store has separate sessions'
  expect(reasons).toEqual([
    'the store has no renewAll',
    'the store has no purge',
    'the inbox has no findUnread',
    notShared,
    notShared,
    notShared,
  ])
  expect(new Set(removed).size).toBe(names.length + 1)
  expect(removed.filter((place) => !/^[a-z][a-z0-9_]{1,62}$/.test(place))).toEqual([])
})

it('two stores in one place that do not see the same sessions are detected', async () => {
  const { checks } = await checkStore(inMemory)
  expect(checks.filter(({ outcome }) => outcome === 'broken').map(({ name }) => name)).toEqual(
    storeChecks.filter(({ needs }) => needs === 'shared').map(({ name }) => name),
  )
})

it('a store without an inbox, which answers with promises and reports nothing with its writes, passes the rest', async () => {
  const bare = (place: StorePlace): SessionStore => {
    const inner = inMemory(place)
    return {
      acquire: async (...args) => {
        const { inbox: _none, ...lease } = inner.acquire(...args)
        return lease
      },
      renew: async (...args) => inner.renew(...args),
      release: async (lease) => void inner.release(lease),
      append: async (lease, records, summary) => void inner.append(lease, records, summary),
      read: async (...args) => inner.read(...args),
      get: async (id) => inner.get(id),
      list: async (options) => inner.list(options),
      delete: async (id) => inner.delete(id),
      close: async () => undefined,
    }
  }
  const { checks, broken } = await checkStore(bare, { shared: false })
  expect(broken).toEqual([])
  const skipped = checks.filter(({ problem }) => problem === 'the store has no inbox')
  expect(skipped.map(({ name }) => name)).toEqual(
    storeChecks.filter(({ needs }) => needs === 'inbox' || needs?.endsWith('Unread')).map(({ name }) => name),
  )
})

describe('a store with its own clock', () => {
  beforeEach(() => void jest.useFakeTimers())
  afterEach(() => void jest.useRealTimers())

  /** Waits end immediately. */
  const passing = async <Value>(work: Promise<Value>): Promise<Value> => {
    const is = { done: false }
    const done = work.finally(() => {
      is.done = true
    })
    while (!is.done) await jest.advanceTimersByTimeAsync(1)
    return done
  }

  it.each([0, 90_000])('is checked by expiring leases if it is %i ms ahead', async (ahead) => {
    const report = await passing(
      checkStore(() => memoryStore({ now: () => Date.now() + ahead }), { shared: false, withinMs: 100_000 }),
    )
    expect(report).toMatchObject({ clock: 'own', broken: [] })
  })

  it('is detected if its leases never expire', async () => {
    const takes = 'a lease has an expiry time, after which others can acquire the session'
    const start = Date.now()
    const stopped = () => memoryStore({ now: () => start })
    const { broken } = await passing(checkStore(stopped, { shared: false, skip: onlyThese([takes]) }))
    expect(broken).toEqual([expect.stringMatching(`^${takes}: it failed: The session s is in use by first`)])
  })
})

/** The in-memory store with one mistake. */
type Mistake = (inner: InMemory, now: () => number) => Partial<SessionStore>

/** The in-memory inbox with one mistake. */
const ofInbox =
  (mistake: (inner: InMemory['inbox']) => Partial<SessionInbox>): Mistake =>
  ({ inbox }) => ({ inbox: { ...inbox, ...mistake(inbox) } })

const anyOrder = 'random operations behave as in the memory store'
const mistakes: [what: string, mistake: Mistake, broken: [check: string, problem: RegExp][]][] = [
  [
    'loses a record',
    (inner) => ({ read: (...args) => inner.read(...args).filter(({ seq }) => seq !== 2) }),
    [
      [
        'the log returns the records in order across several appends',
        /^the log should be \[\{"seq":1,.*\{"seq":2,.*but is \[\{"seq":1,/,
      ],
      ['two hundred concurrent sessions keep all records in order', /^the log of session-0 /],
      [
        anyOrder,
        /^the result of append of .* after .* \(seed 1\) should be "appended", but is "out_of_order"$/,
      ],
    ],
  ],
  [
    'accepts a stale lease',
    (inner) => {
      const latest = new Map<string, Lease>()
      return {
        acquire: (...args) => {
          const lease = inner.acquire(...args)
          latest.set(lease.sessionId, lease)
          return lease
        },
        append: (lease, ...args) => inner.append(latest.get(lease.sessionId) ?? lease, ...args),
      }
    },
    [
      [
        'a lease taken over by another process can neither write, be renewed nor release the session',
        /^an append with a lease taken over by another process should be refused with a StoreError lease_lost, but was answered with \{"inbox":0\}$/,
      ],
      ['a lease is valid for one session only', /^an append to a session leased by another writer should be/],
    ],
  ],
  [
    'drops a title with the next append',
    (inner) => ({
      append: (lease, ...args) => {
        inner.setTitle?.(lease.sessionId, null)
        return inner.append(lease, ...args)
      },
    }),
    [
      [
        'a title survives appends until it is cleared or its session is deleted',
        /^the title after an append should be "O'Hara; -- .*", but is "first message"$/,
      ],
    ],
  ],
  [
    'reports that it has released a session, and has not',
    (inner) => ({
      append: (lease, records, summary) => {
        inner.append(lease, records, summary)
        return { inbox: 0, released: true }
      },
    }),
    [
      [
        'an append can release its lease and reports it; a refused append keeps the lease',
        /^the owner of a session released by an append should be null, but is/,
      ],
    ],
  ],
  [
    'releases a session with an append, and does not report it',
    (inner) => ({
      append: (...args) => {
        inner.append(...args)
        return { inbox: 0 }
      },
    }),
    [
      [
        'an append can release its lease and reports it; a refused append keeps the lease',
        /^append released the session without returning `released`$/,
      ],
    ],
  ],
  [
    'reorders',
    (inner) => ({ read: (...args) => inner.read(...args).toReversed() }),
    [
      ['the log returns the records in order across several appends', /^the log should be/],
      [
        'overlapping appends of one writer are stored completely or refused',
        /should be \[1,2\], but is \[2,1\]$/,
      ],
    ],
  ],
  [
    'reuses the numbers of messages',
    ofInbox((inbox) => {
      const stored = new Map<string, InboxMessage[]>()
      const of = (id: string) => stored.get(id) ?? []
      return {
        put: (id, text) => {
          const { holder } = inbox.put(id, text)
          const message = (of(id).at(-1)?.message ?? 0) + 1
          stored.set(id, [...of(id), { message, at: inbox.read(id).at(-1)?.at ?? 0, text }])
          return { message, holder }
        },
        read: of,
        remove: (id, gone) =>
          void stored.set(
            id,
            of(id).filter(({ message }) => !gone.includes(message)),
          ),
      }
    }),
    [
      [
        'the inbox keeps numbered messages in order until they are removed and never reuses a number',
        /^the number of the message that follows three removed messages should be 4, but is 1$/,
      ],
      [
        'only sessions with records have an inbox, and it is deleted with them',
        /^the inbox of a deleted session should be \[\], but is /,
      ],
    ],
  ],
  [
    'reports no message to the lease owner',
    (inner) => ({ append: (...args) => void inner.append(...args) }),
    [
      [
        "put returns the lease owner, and the owner's next write returns the last message number",
        /^the result of append without messages should be \{"inbox":0\}, but is nothing$/,
      ],
    ],
  ],
  [
    'lists in no order',
    (inner) => ({ list: (options) => inner.list(options).toSorted((a, b) => (a.id < b.id ? -1 : 1)) }),
    [
      [
        'the list contains every session with records, newest first, with its lease owner',
        /^the list ordered by last write should be \["a","c","b"\], but is \["a","b","c"\]$/,
      ],
      [
        'the list can be filtered by state and agent, and its pages contain no duplicates',
        /^the list ordered by updatedAt/,
      ],
    ],
  ],
  [
    'restarts with each page',
    (inner) => ({ list: ({ after: _after, ...options } = {}) => inner.list(options) }),
    [
      [
        'the list can be filtered by state and agent, and its pages contain no duplicates',
        /in pages of three should be/,
      ],
    ],
  ],
  [
    'lists the sessions of every owner',
    (inner) => ({ list: ({ prefix: _prefix, tags: _tags, ...options } = {}) => inner.list(options) }),
    [
      [
        'the list can be filtered by prefix, tags, parent and time, has pages, and excludes sub-agent sessions by default',
        /^the list for \{"prefix":"ann".* should be/,
      ],
      [
        'a session is found by the tags of its last summary, for any tag text',
        /^the list filtered by .* should be/,
      ],
      [
        'the list refuses missing owners and contradicting options',
        /should be refused with a UsageError invalid_option/,
      ],
    ],
  ],
  [
    'keeps the first record of a refused append',
    (inner) => ({
      append: (lease, records, ...args) => {
        for (const record of records) inner.append(lease, [record], ...args)
        return { inbox: 0 }
      },
    }),
    [
      [
        "an append must follow the log's head and is atomic",
        /^the log after an append of 3, 5 to a log of two should be/,
      ],
    ],
  ],
  [
    'grants a session to all who request it',
    (inner) => ({
      acquire: (id, options) => {
        try {
          return inner.acquire(id, options)
        } catch {
          return { sessionId: id, token: 'mine', holder: options.holder, expiresAt: 0 }
        }
      },
    }),
    [
      [
        'a session has one lease owner, whose name is reported to others',
        /^a second acquire should be refused/,
      ],
      [
        'one of twenty concurrent writers acquires a session',
        /^the number of writers that acquired it should be 1, but is 20$/,
      ],
      ['session ids are validated', /^a session with the id "" should be refused with a UsageError/],
    ],
  ],
  [
    'does not name the lease owner',
    (inner) => ({
      acquire: (id, options) => {
        try {
          return inner.acquire(id, options)
        } catch {
          throw new StoreError('session_busy', 'It is in use.', id)
        }
      },
    }),
    [
      [
        'a session has one lease owner, whose name is reported to others',
        /should name the lease owner, 'run 4f2a', but is "It is in use\."$/,
      ],
    ],
  ],
  [
    'refuses with untyped errors',
    (inner) => ({
      append: (lease, ...args) => {
        try {
          return inner.append(lease, ...args)
        } catch {
          throw new Error('Not you.')
        }
      },
    }),
    [
      [
        'a released lease cannot be used',
        /^an append with a released lease should be refused with a StoreError lease_lost, but was refused with Error: Not you$/,
      ],
    ],
  ],
  [
    'deletes a session that is being written',
    (inner) => ({
      delete: (id) => {
        const [listed] = inner.list().filter((one) => one.id === id)
        return listed !== undefined
      },
    }),
    [
      [
        'delete is refused while a process has the lease',
        /^a delete should be refused with a StoreError session_busy, but was answered with true$/,
      ],
      [
        'delete removes a session with all its records and returns whether it existed',
        /^the second delete should be false, but is true$/,
      ],
    ],
  ],
  [
    'never answers',
    () => ({ read: async () => new Promise(() => undefined) }),
    [['the log of a session that does not exist is empty', /^it took longer than 300 ms$/]],
  ],
  [
    'cannot be closed',
    () => ({ close: async () => Promise.reject(new Error('The pool is gone.')) }),
    [['the log of a session that does not exist is empty', /^it failed: The pool is gone$/]],
  ],
]

it.each(mistakes)('a store that %s is detected', async (_what, mistake, expected) => {
  const args = expected.map(([name]) => name)
  const mistaken = (place: StorePlace): SessionStore => {
    const inner = inMemory(place)
    return { ...inner, ...mistake(inner, place.now) }
  }
  const { checks, broken } = await checkStore(mistaken, {
    shared: false,
    skip: onlyThese(args),
    withinMs: 300,
  })
  const found = checks.filter(({ outcome }) => outcome === 'broken')
  expect(found.map(({ name }) => name).toSorted()).toEqual(args.toSorted())
  for (const [name, problem] of expected)
    expect(found.find((one) => one.name === name)?.problem).toMatch(problem)
  expect(broken).toEqual(found.map(({ name, problem }) => `${name}: ${problem}.`))
})

it('other seeds make other choices, and the same seed the same', async () => {
  const written = async (seed: number) => {
    const texts: string[] = []
    const open = (place: StorePlace): SessionStore => {
      const inner = inMemory(place)
      return {
        ...inner,
        append: (lease, records, ...rest) => {
          texts.push(...records.map(({ data }) => data))
          return inner.append(lease, records, ...rest)
        },
      }
    }
    await checkStore(open, { seed, skip: onlyThese(['the log keeps any JSON text unchanged']) })
    return texts
  }
  const first = await written(1)
  expect(first.length).toBeGreaterThan(30)
  expect(await written(1)).toEqual(first)
  expect(await written(2)).not.toEqual(first)
})

describe('invalid options are refused', () => {
  it.each([
    [
      'an unknown check name',
      inMemory,
      { skip: { speed: 'no' } },
      /^skip: unknown check 'speed'\. Available: the log /,
    ],
    [
      'an invalid time',
      inMemory,
      { withinMs: Number.NaN },
      /withinMs must be a positive number of milliseconds/,
    ],
    ['an invalid lease', inMemory, { leaseMs: 0 }, /leaseMs must be a positive number of milliseconds/],
  ])('%s', async (_what, open, options, message) => {
    await expect(checkStore(open as typeof inMemory, options)).rejects.toMatchObject({
      code: 'bad_option',
      message: expect.stringMatching(message),
    })
  })
})
