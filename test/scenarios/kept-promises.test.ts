import { createActor, toPromise } from 'xstate'
import { agentMachine, createAgent, memoryStore, openaiChat } from '../../src/index.js'
import { type RecordContent, sealRecord } from '../../src/core/sessions/log/log-record.js'
import { stage } from '../support/play.js'
import { call, text, times, tool } from '../support/tools.js'

/** Documented promises that concern two features, and so fit no other file. */

test('a missing actor ends the run in ERROR instead of a hang', async () => {
  const agent = createAgent({ model: openaiChat({ model: 'm', baseURL: 'http://127.0.0.1:9/v1' }) })
  const actor = createActor(agentMachine, { input: agent.createInput('Hi.') })
  actor.start()
  const { state, error } = await toPromise(actor)
  expect(state).toBe('ERROR')
  expect(error?.message).toContain("The actor 'requestModel' is not provided")
})

test('a wait before a retry continues in the resuming process until the same time', async () => {
  const store = memoryStore()
  const play = await stage([{ status: 429, retryAfter: 60 }, text('Done.')], { store })
  const first = play.run('Go.', { session: 's' })
  const { at, delayMs } = await first.event('retry')
  const id = await play.agent.fork('s')
  first.run.cancel()
  await first.run.result
  play.clock.increment(20_000)
  const model = openaiChat({ model: 'gpt-test', baseURL: play.rehearsal.url, apiKey: 'none' })
  const resumed = await createAgent({ model, store, clock: play.clock }).resume(id)
  while (resumed.state === 'RUNNING') {
    play.clock.increment(1_000)
    await new Promise((resolve) => setImmediate(resolve))
  }
  expect(await resumed.result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
  expect(play.requests.map((request) => request.turn)).toEqual([0, 1])
  const answered = (await resumed.result).messages.at(-1)?.createdAt ?? 0
  expect(delayMs).toBe(60_000)
  expect(answered).toBeGreaterThanOrEqual(at + delayMs)
})

/** A session whose log has snapshots. */
async function longSession() {
  const store = memoryStore()
  const work = tool('work', ({ n }) => `${String(n)}${'x'.repeat(21_000)}`, { readOnly: true })
  const turns = Array.from({ length: 8 }, (_, n) => call('work', { n }))
  const play = await stage([...turns, text('Done.')], { store, tools: [work] })
  await play.run('Go.', { session: 's' }).end(9)
  return { play, store }
}

test('a snapshot is written after 64,000 characters since the last one', async () => {
  const { store } = await longSession()
  let since = 0
  let snapshots = 0
  for (const { type, data } of store.read('s')) {
    if (type === 'snapshot') {
      snapshots += 1
      expect(since).toBeGreaterThanOrEqual(64_000)
      since = 0
    } else {
      // The record that crosses the limit is still part of the interval.
      expect(since).toBeLessThan(64_000)
      since += data.length
    }
  }
  expect(snapshots).toBeGreaterThan(1)
})

test('a log of a newer Statewright, or with a state that this machine lacks, is refused', async () => {
  const { play, store } = await longSession()
  const forge = (session: string, change: (entry: RecordContent) => RecordContent) => {
    const all = store.read('s')
    const records = all.slice(0, all.findIndex(({ type }) => type === 'snapshot') + 1)
    const lease = store.acquire(session, { holder: 'the test', ttlMs: 1_000 })
    const changed = records.map(({ seq, at, type, data }) =>
      sealRecord(seq, at, change({ ...(JSON.parse(data) as object), type } as RecordContent)),
    )
    store.append(lease, changed)
    store.release(lease)
    return play.agent.resume(session)
  }
  const newer = forge('newer', (entry) => ('version' in entry ? { ...entry, version: 99 as 1 } : entry))
  await expect(newer).rejects.toMatchObject({ code: 'newer_log' })
  const elsewhere = forge('elsewhere', (entry) =>
    entry.type === 'snapshot'
      ? { ...entry, state: { ...entry.state, value: { RUNNING: 'nowhere' } } }
      : entry,
  )
  await expect(elsewhere).rejects.toMatchObject({ code: 'unknown_state' })
  // The loop does not write such logs.
  for (const forged of ['newer', 'elsewhere']) store.delete(forged)
})

test('a custom provider declares where it accepts the response format', async () => {
  const output = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] } as const
  const play = await stage(times(3, text('{"city":"Paris"}')))
  const inner = openaiChat({ model: 'm', baseURL: play.rehearsal.url, apiKey: 'none', provider: 'mine' })
  const formats = []
  for (const structuredOutput of ['beside_tools', 'alone', undefined] as const) {
    const model = { ...inner, ...(structuredOutput && { structuredOutput }) }
    await createAgent({ model, output, tools: [tool('look')] }).run('Go.').result
    formats.push(play.requests.at(-1)?.body as { response_format?: object } | undefined)
  }
  expect(formats.map((body) => body?.response_format !== undefined)).toEqual([true, false, false])
})

test('tool metadata of a source is read when a run starts', async () => {
  const source = { tools: [tool('look')] }
  const model = openaiChat({ model: 'm', baseURL: 'http://127.0.0.1:9/v1' })
  const agent = createAgent({ model, tools: [source as never] })
  const before = agent.createInput('Hi.')
  source.tools = [tool('look', () => '', { readOnly: true })]
  expect([before.tools.look?.readOnly ?? false, agent.createInput('Hi.').tools.look?.readOnly]).toEqual([
    false,
    true,
  ])
})
