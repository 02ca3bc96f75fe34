import { readdirSync, readFileSync } from 'node:fs'
import * as fc from 'fast-check'
import { fromPromise } from 'xstate'
import { memoryStore, type LogRecord } from '../../src/index.js'
import { paths } from '../../src/studio/routes.js'
import type { SessionsView, SessionView } from '../../src/studio/protocol.js'
import { durable } from '../../src/durable/index.js'
import { claimMachine } from '../durable/claim.js'
import type { StoredCase } from '../fixtures/sessions/stored-case.js'
import { damaged, damages, forged, resealed } from '../support/damaged-logs.js'
import { sampled, sampledRows } from '../support/extent.js'
import { eventful, type Rehearsed, rehearsedAgent } from './rehearsed.js'
import { visit, type Visitor } from './visitor.js'

const folder = new URL('../fixtures/sessions/0.2.0/', import.meta.url)
let logs: LogRecord[][]
let rehearsed: Rehearsed
const store = memoryStore()

beforeAll(async () => {
  logs = readdirSync(folder).flatMap((file) => {
    const { sessions } = JSON.parse(readFileSync(new URL(file, folder), 'utf8')) as StoredCase
    return Object.values(sessions).flatMap((records) => [records.slice(0, -1), records])
  })
  const source = memoryStore()
  const { agent, close } = await rehearsedAgent(source, eventful)
  await agent.run('Pay the invoice.', { session: 'live', tags: { a: 'b' } }).result
  const fork = await agent.fork('live', 4, { edit: { message: 'm1', content: 'Pay June.' } })
  await (await agent.resume(fork)).result
  await close()
  logs.unshift(source.read('live'), source.read(fork))
  rehearsed = await rehearsedAgent(store, eventful)
})
afterAll(() => rehearsed.close())

const add = (id: string, records: LogRecord[]): void => {
  const lease = store.acquire(id, { holder: 'a test', ttlMs: 1_000 })
  store.append(lease, records)
  store.release(lease)
}

const types = ['opened', 'start', 'event', 'snapshot', 'x', 'toString'] as const

/** A log with a damage that checksums do not reveal. */
const damagedLog = (): fc.Arbitrary<LogRecord[]> =>
  fc
    .record({
      log: fc.constantFrom(...logs),
      place: fc.nat(),
      other: fc.nat(),
      how: fc.constantFrom('content', 'content', 'content', 'removed', 'repeated', 'swapped', 'type'),
      damage: damages,
    })
    .map(({ log, place, other, how, damage }) => {
      const [at, to] = [place % log.length, other % log.length]
      const [one, two] = [log[at], log[to]] as [LogRecord, LogRecord]
      if (how === 'content')
        return log.with(
          at,
          forged(one, (value) => damaged(value, damage)),
        )
      if (how === 'removed') return resealed(log.toSpliced(at, 1))
      if (how === 'repeated') return resealed(log.toSpliced(to, 0, one))
      if (how === 'swapped') return resealed(log.with(at, two).with(to, one))
      return resealed(log.with(at, { ...one, type: types[other % types.length] as LogRecord['type'] }))
    })
    .filter((records) => records.length > 0)

/** Every address of the session that a page reads. */
const addressesOf = (id: string): string[] => [
  paths.end(id),
  paths.session(id),
  paths.machine(id),
  paths.moments(id, 1, 256),
  ...store
    .read(id)
    .flatMap(({ seq }) => [
      paths.moment(id, seq),
      paths.request(id, seq, true),
      paths.request(id, seq, false),
    ]),
  ...(['page', 'card', 'film'] as const).map((form) => paths.share(id, { form, texts: true })),
  paths.share(id, { form: 'page', texts: false }),
  paths.compare(id, id),
]

/** Returns the problem with which the session's own address shows it. */
async function readAll(visitor: Visitor, id: string): Promise<string | null> {
  let problem: string | null = null
  for (const address of addressesOf(id)) {
    const { status, body } = await visitor.raw(address)
    if (status === 200) {
      if (address === paths.session(id)) ({ problem } = (JSON.parse(body) as SessionView).session)
      continue
    }
    expect(`${address} ${status} ${body}`).toMatch(/ 4\d\d \{"error":\{"code":"(?!internal)/)
    if (body.includes('corrupt_log')) expect(body).toContain(`'${id}'`)
  }
  return problem
}

/** The list, after the studio has read all logs in the background. */
async function readList(visitor: Visitor): Promise<SessionsView> {
  const { unread } = await visitor.get<SessionsView>(paths.found({ limit: 500 }))
  if (unread > 0) await visitor.live().receive('list', (message) => message.unread === 0)
  return visitor.get<SessionsView>(paths.found({ limit: 500 }))
}

test('no damaged log makes a route of the studio fail without a typed error', async () => {
  const cases = fc.sample(damagedLog(), sampled(120))
  cases.forEach((records, i) => add(`s${i}`, records))
  const visitor = await visit({ store, agent: rehearsed.agent })
  const problems = new Map<string, string | null>()
  for (const i of cases.keys()) problems.set(`s${i}`, await readAll(visitor, `s${i}`))
  await visitor.get(paths.visits)
  const { sessions } = await readList(visitor)
  const found = [...problems].flatMap(([id, problem]) => (problem === null ? [] : [id]))
  expect(found.length).toBeGreaterThan(cases.length / 10)
  const listed = new Map(sessions.map(({ id, status }) => [id, status]))
  expect(found.filter((id) => listed.get(id) !== 'damaged')).toEqual([])
})

/** Replaces the value of this key everywhere in a record's content. */
const withIn = (key: string, by: unknown) => (value: unknown) =>
  JSON.parse(JSON.stringify(value, (at, inner: unknown) => (at === key ? by : inner))) as unknown

const namedDamages: [string, LogRecord['type'] | 'fork', (value: unknown) => unknown][] = [
  ['a message that is no text', 'start', withIn('content', 5)],
  ['a message without parts', 'start', withIn('content', [null])],
  ['tools that are no object', 'start', withIn('tools', 'x')],
  ['limits that are no object', 'start', withIn('limits', 'x')],
  ['no features', 'start', withIn('features', null)],
  ['a model that is no text', 'event', withIn('model', 5)],
  ['an answer that is no text', 'event', withIn('text', [])],
  ['calls that are no list', 'event', withIn('toolCalls', 'x')],
  ['usage that is no object', 'event', withIn('usage', 'x')],
  ['a failure without a code', 'event', withIn('code', undefined)],
  ['a name that is no text', 'opened', (value) => ({ ...(value as object), name: 5 })],
  ['a state without messages', 'opened', (value) => ({ ...(value as object), state: {} })],
  ['an origin that is no object', 'opened', (value) => ({ ...(value as object), forkedFrom: 5 })],
  ['an origin without a record', 'fork', withIn('seq', undefined)],
  ['an edit that is no object', 'fork', withIn('edit', 'x')],
  ['a parent that is no text', 'opened', (value) => ({ ...(value as object), parent: 5 })],
]

test.each(sampledRows(namedDamages))('%s is shown as damage', async (what, type, change) => {
  const [live = [], fork = []] = logs
  const id = what.replaceAll(' ', '_')
  const log = type === 'fork' ? fork : live
  const place = log.findIndex(
    (record) =>
      record.type === (type === 'fork' ? 'opened' : type) &&
      JSON.stringify(change(JSON.parse(record.data))) !== record.data,
  )
  add(id, log.with(place, forged(log[place] as LogRecord, change)))
  const visitor = await visit({ store, agent: rehearsed.agent })
  // The list first, so that no page has read the log.
  const { sessions } = await readList(visitor)
  expect(await readAll(visitor, id)).toContain(`The log of session '${id}': record ${place + 1} `)
  expect(sessions.find((row) => row.id === id)).toMatchObject({ status: 'damaged' })
})

test('a damaged record of a machine is named', async () => {
  const source = memoryStore()
  const pay = fromPromise<string, { amount: number; claim: string }>(async () => 'p1')
  const claims = durable(claimMachine, { store: source, actors: { pay } })
  await claims.start('claim', { input: { amount: 900 } })
  await claims.settled('claim')
  const [one] = source.read('claim') as [LogRecord]
  const { summary } = source.get('claim') ?? {}
  const changes = [
    withIn('type', 5),
    withIn('refused', null),
    withIn('actors', { pay: {} }),
    withIn('delays', [{}]),
    withIn('machine', undefined),
  ]
  const visitor = await visit({ store })
  for (const [i, change] of changes.entries()) {
    const id = `claim${i}`
    const lease = store.acquire(id, { holder: 'a test', ttlMs: 1_000 })
    const damage = (value: unknown) => change({ refused: { code: 'x', message: 'y' }, ...(value as object) })
    store.append(lease, [forged(one, damage)], summary ?? undefined)
    store.release(lease)
    const { status, body } = await visitor.raw(paths.machine(id))
    expect(`${status} ${body}`).toMatch(
      new RegExp(
        `^409 .*corrupt_log.*The log of session '${id}': record 1 .*\\. No record before it is intact`,
      ),
    )
  }
  const { sessions } = await readList(visitor)
  const listed = changes.map((_, i) => sessions.find(({ id }) => id === `claim${i}`))
  expect(listed.map((row) => [row?.status, row?.problem])).toEqual(
    changes.map((_, i) => ['damaged', expect.stringContaining(`The log of session 'claim${i}': record 1 `)]),
  )
})

test('a damaged record before the last one of a machine is listed once the log has been read', async () => {
  const source = memoryStore()
  const claims = durable(claimMachine, { store: source, actors: { pay: fromPromise(async () => 'p1') } })
  await claims.start('claim', { input: { amount: 900 } })
  await claims.send('claim', { type: 'APPROVE', by: 'ann' })
  await claims.settled('claim')
  const [one, ...others] = source.read('claim') as [LogRecord, ...LogRecord[]]
  const own = memoryStore()
  const lease = own.acquire('claim', { holder: 'a test', ttlMs: 1_000 })
  const { summary } = source.get('claim') ?? {}
  own.append(lease, [forged(one, withIn('type', 5)), ...others], summary ?? undefined)
  own.release(lease)
  const { sessions } = await readList(await visit({ store: own }))
  expect(sessions).toMatchObject([{ id: 'claim', status: 'damaged', value: 'paid' }])
})

test('a machine whose records are gone is unknown', async () => {
  const source = memoryStore()
  const claims = durable(claimMachine, { store: source, actors: { pay: fromPromise(async () => 'p1') } })
  await claims.start('claim', { input: { amount: 900 } })
  await claims.settled('claim')
  const visitor = await visit({ store: { ...source, read: () => [] } })
  expect(await visitor.raw(paths.machine('claim'))).toMatchObject({
    status: 404,
    body: expect.stringContaining('unknown_session'),
  })
})
