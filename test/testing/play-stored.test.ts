import { readdirSync, readFileSync } from 'node:fs'
import { SimulatedClock } from 'xstate'
import { createAgent, memoryStore, openaiChat } from '../../src/index.js'
import { replaySession, createRecordedAgent, recordSession } from '../../src/testing/index.js'
import { cases } from '../fixtures/sessions/cast.js'
import type { StoredCase } from '../fixtures/sessions/stored-case.js'

const folder = new URL('../fixtures/sessions/', import.meta.url)
const all = readdirSync(folder, { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'))
  .flatMap(({ name: version }) =>
    readdirSync(new URL(`${version}/`, folder)).map((file) => ({
      version,
      name: file.replace(/\.json$/, ''),
    })),
  )

/** Fails on any request, because sessions are replayed without a model. */
const model = openaiChat({ model: 'gpt-test', baseURL: 'http://127.0.0.1:9', apiKey: 'none' })

test('sessions of every earlier version exist', () => {
  expect(all.length).toBeGreaterThanOrEqual(21)
})

test.each(all)(
  'a session of $version ($name) plays on the agent that stored it',
  async ({ version, name }) => {
    const fixture = JSON.parse(readFileSync(new URL(`${version}/${name}.json`, folder), 'utf8')) as StoredCase
    const one = cases[name]
    if (!one) throw new Error(`cast.ts has no case '${name}'.`)
    const clock = new SimulatedClock()
    clock.set(fixture.at)
    const store = memoryStore({ now: () => clock.now() })
    for (const [id, records] of Object.entries(fixture.sessions)) {
      const lease = store.acquire(id, { holder: 'the test', ttlMs: 1_000 })
      store.append(lease, records)
      store.release(lease)
    }
    const options = one.options({ model, clock, isFirst: false, ran: [] })
    const agent = createAgent({ ...options, model, store, clock })
    const { state, reason } = fixture.result

    expect(await replaySession(agent, store.read('the-session'))).toMatchObject({ state, runs: 1 })
    expect(await replaySession(agent, store.read('the-session', { from: 'snapshot' }))).toMatchObject({
      state,
    })

    const recording = JSON.parse(JSON.stringify(await recordSession(agent, 'the-session'))) as object
    const played = await replaySession(agent, recording)
    expect(played).toMatchObject({ state, runs: 1 })
    if (reason !== 'internal') expect(played).toMatchObject({ reason })
    expect(played.subAgents).toHaveLength(Object.keys(fixture.sessions).length - 1)
    expect(await replaySession(createRecordedAgent(recording), recording)).toMatchObject({ state })
  },
)
