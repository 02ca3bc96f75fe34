import { readdirSync, readFileSync } from 'node:fs'
import { createActor, SimulatedClock, type StateValue } from 'xstate'
import { createAgent, memoryStore, openaiChat } from '../../src/index.js'
import { type Rehearsal, startRehearsal } from '../../src/rehearsal/index.js'
import { describeValue } from '../../src/core/chart/state-labels.js'
import type { SyncSessionStore } from '../../src/stores/index.js'
import { cases } from '../fixtures/sessions/cast.js'
import type { StoredCase } from '../fixtures/sessions/stored-case.js'
import { findHistoryProblem } from '../support/history.js'

// Stored fixtures never change. `make.mjs` adds a folder for each new version and leaves the others
// untouched.
const folder = new URL('../fixtures/sessions/', import.meta.url)
const versions = readdirSync(folder, { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'))
  .map(({ name }) => name)

function stored(version: string, name: string): StoredCase {
  return JSON.parse(readFileSync(new URL(`${version}/${name}.json`, folder), 'utf8')) as StoredCase
}

/**
 * A store with a fixture's sessions. `from` selects a replay of the events or of the snapshot after them.
 */
function filled({ sessions }: StoredCase, from: string, now: () => number): SyncSessionStore {
  const store = memoryStore({ now })
  for (const [id, records] of Object.entries(sessions)) {
    const lease = store.acquire(id, { holder: 'the test', ttlMs: 1_000 })
    store.append(lease, from === 'events' ? records.slice(0, -1) : records)
    store.release(lease)
  }
  return store
}

const rehearsals: Rehearsal[] = []

afterEach(async () => {
  await Promise.all(rehearsals.splice(0).map((rehearsal) => rehearsal.close()))
})

const all = versions.flatMap((version) =>
  readdirSync(new URL(`${version}/`, folder)).flatMap((file) =>
    ['events', 'a snapshot'].map((from) => ({ version, name: file.replace(/\.json$/, ''), from })),
  ),
)

test.each([['0.2.0', 21]])('nothing that %s has stored is lost', (stored, sessions) => {
  expect(all.filter(({ version }) => version === stored)).toHaveLength(2 * sessions)
})

describe.each(all)('a session that $version stored ($name), from $from', ({ version, name, from }) => {
  it('has the same state, and continues to its end', async () => {
    const fixture = stored(version, name)
    const one = cases[name]
    if (!one) throw new Error(`cast.ts has no case '${name}'.`)
    const clock = new SimulatedClock()
    clock.set(fixture.at)
    const store = filled(fixture, from, () => clock.now())
    const ran: string[] = []
    // The last turn answers one more message.
    const rehearsal = await startRehearsal({ turns: [...one.after, { text: 'And more.' }] })
    rehearsals.push(rehearsal)
    const model = openaiChat({ model: 'gpt-test', baseURL: rehearsal.url, apiKey: 'none' })
    const agent = createAgent({ ...one.options({ model, clock, isFirst: false, ran }), model, store, clock })

    const { run: then, messages } = await agent.replay('the-session')
    const { state, steps, usage } = fixture.result
    const isAtWork = state === 'RUNNING' || state === 'WAITING_FOR_TOOL'
    expect(then).toMatchObject(isAtWork ? { state, steps, usage } : fixture.result)
    expect(messages).toMatchObject(fixture.result.messages)
    expect(findHistoryProblem(messages, openCalls(fixture))).toBeNull()

    const run = await agent.resume('the-session')
    await one.goOn?.(run, clock)
    const result = await run.result
    expect(result).toMatchObject(one.end)
    expect(findHistoryProblem(result.messages)).toBeNull()
    expect(ran).toEqual(one.runs ?? [])
    expect(rehearsal.requests).toHaveLength(one.after.length)
    expect((await agent.replay('the-session')).run).toMatchObject({
      state: result.state,
      output: result.output,
    })

    const other = createAgent({ model, store, clock })
    const next = await other.run('And now?', { session: 'the-session' }).result
    expect(next).toMatchObject({ state: 'COMPLETED', output: 'And more.' })
    expect(next.messages.slice(0, result.messages.length)).toEqual(result.messages)
  })
})

describe.each(versions)('a state stored by an app, of %s', (version) => {
  const cases = readdirSync(new URL(`${version}/`, folder)).flatMap((file) => {
    const { sessions } = stored(version, file.replace(/\.json$/, ''))
    const last = JSON.parse(sessions['the-session']?.at(-1)?.data ?? '') as { state: StoredState }
    return typeof last.state.value === 'object' ? [{ file, state: last.state }] : []
  })

  it.each(cases)('loads and continues ($file)', async ({ state }) => {
    const model = { provider: 'test', model: 'm', request: () => new Promise<never>(() => undefined) }
    const agent = createAgent({ model, clock: new SimulatedClock() })
    const actor = createActor(agent.machine, { snapshot: state as never, input: undefined as never })
    expect(describeValue(actor.getSnapshot().value).split('.')).toEqual(
      expect.arrayContaining(describeValue(state.value).split('.')),
    )
    actor.start()
    await new Promise((resolve) => setImmediate(resolve))
    // This agent has no shields and no room for the request, so pending checks and approval requests end at
    // once.
    const { status, value } = actor.getSnapshot()
    const end = status === 'done' ? value : 'CANCELLED'
    expect(['COMPLETED', 'ERROR', 'CANCELLED']).toContain(end)
    actor.send({ type: 'CANCEL' })
    expect(actor.getSnapshot()).toMatchObject({ value: end, status: 'done' })
  })
})

interface StoredState {
  value: StateValue
}

/** Calls without a result. Running and waiting calls have none. */
function openCalls({ result }: StoredCase): string[] {
  const answered = new Set(
    result.messages.flatMap((message) => (message.role === 'tool' ? [message.tool_call_id] : [])),
  )
  const waiting = result.messages.flatMap((message) =>
    message.role === 'assistant' ? (message.tool_calls ?? []).map(({ id }) => id) : [],
  )
  return result.state === 'COMPLETED' ? [] : waiting.filter((id) => !answered.has(id))
}
