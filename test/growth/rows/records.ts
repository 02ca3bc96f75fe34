import {
  type AgentEvent,
  defineAgents,
  memoryStore,
  type SessionStore,
  listStrandedSessions,
  runSession,
} from '../../../src/index.js'
import { durable } from '../../../src/durable/index.js'
import { tallyMachine } from '../../durable/tally.js'
import { type Row, row } from '../measure.js'
import { agentOf, scripted, stepping } from '../scripted.js'
import { SessionActions } from '../../../src/studio/session-actions.js'
import { AttachedRuns } from '../../../src/studio/attached-runs.js'
import { SessionCatalogue } from '../../../src/studio/session-catalogue.js'
import { SessionLibrary } from '../../../src/studio/session-library.js'
import { StudioViews } from '../../../src/studio/studio-views.js'
import { chatHandler } from '../../../src/ui/index.js'
import { createReplayBuffer } from '../../../src/web/replay-buffer.js'
import { createSessionData } from '../../../src/studio/export-session.js'
import { drawFilm } from '../../../src/studio/session-film.js'
import {
  replaySession,
  checkSessionLog,
  createRecordedAgent,
  pathOf,
  recordSession,
} from '../../../src/testing/index.js'

interface Kept {
  store: SessionStore
  agent: ReturnType<typeof agentOf>
}

/** Sessions of this many steps, each created once, because the rows only read them. */
const known = new Map<number, Promise<Kept>>()

function sessionOf(steps: number): Promise<Kept> {
  const one = known.get(steps) ?? written(steps)
  known.set(steps, one)
  return one
}

/** A session of this many steps in a store. */
async function written(steps: number): Promise<Kept> {
  const store = memoryStore()
  const agent = agentOf(stepping(steps), { store })
  await agent.run('Look.', { session: 's' }).result
  return { store, agent }
}

/** A store with this many sessions of a few records each. */
async function shelf(sessions: number): Promise<Kept> {
  const store = memoryStore()
  const agent = agentOf(
    scripted(() => ({ text: 'Done.' })),
    { store },
  )
  for (let i = 0; i < sessions; i += 1) await agent.run('Look.', { session: `s${i}` }).result
  return { store, agent }
}

/** A session with this many messages in its inbox. */
async function letters(messages: number): Promise<Kept> {
  const one = await written(1)
  for (let i = 0; i < messages; i += 1)
    void one.store.inbox?.put('s', JSON.stringify({ type: 'STEER', text: `Look at ${i}.` }))
  return one
}

const write = async (n: number): Promise<void> => {
  const store = memoryStore()
  const lease = store.acquire('s', { holder: 'me', ttlMs: 30_000 })
  for (let i = 1; i <= n; i += 1) {
    store.append(lease, [{ seq: i, at: 0, type: i === 1 ? 'opened' : 'event', data: '{}', check: '' }])
    store.renew(lease, 30_000)
  }
  store.release(lease)
}

/**
 * Steps of a session. A log is read from its last snapshot, one in about 215 records, and a step has two
 * records. At these sizes the part after the last snapshot doubles with the session.
 */
const size = { from: 122, atMost: 488 }

/** The studio's view, reread. */
function studioOf(store: SessionStore): StudioViews {
  const library = new SessionLibrary(store, () => false)
  const actions = new SessionActions({ library, runs: new AttachedRuns() })
  return new StudioViews(new SessionCatalogue(library), actions, { store: '', machine: undefined })
}

const createDelta = (seq: number): AgentEvent => ({
  type: 'tool_call_delta',
  stepId: 's1',
  attempt: 1,
  callId: `call_${seq % 2}`,
  name: 'look',
  index: seq % 2,
  delta: 'x',
  id: `${seq}`,
  runId: 'r1',
  seq,
  at: 0,
})

const chat = ({ agent }: Kept) => chatHandler({ agent, authorize: 'none', path: '/chat' })

const page = (path: string, init?: RequestInit) => new Request(`http://localhost/chat${path}`, init)

const message = (id: string, n: number) =>
  JSON.stringify({
    id,
    messages: Array.from({ length: n }, (_, i) => ({
      id: `u${i}`,
      role: 'user',
      parts: [{ type: 'text', text: 'Hi.' }],
    })),
  })

async function drained(events: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of events);
}

export const recordRows: readonly Row[] = [
  row({
    name: 'writing a log',
    covers: ['store acquire', 'store append', 'store renew', 'store release'],
    from: 500,
    atMost: 16_000,
    prepare: (n) => n,
    run: write,
  }),
  row({
    name: 'listing sessions',
    covers: ['store list'],
    from: 50,
    atMost: 800,
    prepare: shelf,
    run: ({ store }) => store.list(),
  }),
  row({
    name: 'stranded sessions',
    covers: ['statewright listStrandedSessions'],
    from: 50,
    atMost: 800,
    prepare: shelf,
    run: ({ store, agent }) => listStrandedSessions(defineAgents({ looker: agent }), store),
  }),
  row({
    name: 'reading an inbox',
    covers: ['inbox read', 'inbox put', 'inbox listUnread'],
    from: 500,
    atMost: 8_000,
    prepare: letters,
    run: ({ store }) => store.inbox?.read('s'),
  }),
  row({
    name: 'saying what is queued',
    covers: ['agent send'],
    from: 12,
    // A queue accepts 100 messages, so 4n is the maximum that a measurement sends.
    atMost: 25,
    prepare: async (n) => {
      const store = memoryStore()
      const agent = agentOf(
        scripted(() => ({ text: 'Done.' })),
        { store },
      )
      await agent.run('Look.', { session: 's' }).result
      return { store, agent, n }
    },
    run: async ({ agent, n }) => {
      for (let i = 0; i < n; i += 1)
        await agent.send('s', { type: 'message', when: 'next', input: `Look at ${i}.` })
      return runSession(agent, { session: 's' })
    },
  }),
  row({
    name: 'resuming a session',
    covers: ['agent resume'],
    ...size,
    prepare: sessionOf,
    run: async ({ agent }) => (await agent.resume('s')).result,
  }),
  row({
    name: 'watching a session that has ended',
    covers: ['agent watch'],
    ...size,
    prepare: sessionOf,
    run: ({ agent }) => drained(agent.watch('s')),
  }),
  row({
    name: 'checkSessionLog',
    covers: ['statewright/testing checkSessionLog'],
    from: 25,
    atMost: 100,
    prepare: async (n) => (await sessionOf(n)).store.read('s'),
    run: (records) => checkSessionLog(records),
  }),
  row({
    name: 'pathOf',
    covers: ['statewright/testing pathOf'],
    from: 25,
    atMost: 100,
    prepare: async (n) => {
      const store = memoryStore()
      const tallies = durable(tallyMachine, { store })
      await tallies.start('t')
      for (let i = 1; i <= n; i += 1) await tallies.send('t', { type: 'COUNT', from: 'ann', n: i })
      await tallies.settled('t')
      return store
    },
    run: (store) => pathOf(store, 't'),
  }),
  row({
    name: 'replaySession',
    covers: ['statewright/testing replaySession', 'statewright/testing createRecordedAgent'],
    from: 25,
    atMost: 100,
    prepare: async (n) => recordSession((await sessionOf(n)).agent, 's'),
    run: (recording) => replaySession(createRecordedAgent(recording), recording),
  }),
  row({
    name: 'agent.replay',
    covers: ['agent replay'],
    ...size,
    prepare: sessionOf,
    run: ({ agent }) => agent.replay('s'),
  }),
  row({
    name: 'agent.readSession',
    covers: ['agent readSession'],
    ...size,
    prepare: sessionOf,
    run: ({ agent }) => agent.readSession('s'),
  }),
  row({
    name: 'agent.fork',
    covers: ['agent fork'],
    ...size,
    prepare: sessionOf,
    run: ({ agent }) => agent.fork('s'),
  }),
  row({
    name: 'the branches of a session',
    covers: ['agent branch', 'agent selectBranch', 'agent listBranches'],
    ...size,
    prepare: sessionOf,
    run: async ({ agent }) => {
      const id = await agent.fork('s')
      await agent.branch(id, { from: 'm1' }).result
      await agent.selectBranch(id, 1)
      return agent.listBranches(id)
    },
  }),
  row({
    name: 'reading a log',
    covers: ['store read', 'store get', 'statewright memoryStore', 'statewright/stores memoryStore'],
    ...size,
    prepare: sessionOf,
    run: ({ store }) => store.read('s'),
  }),
  row({
    name: 'recordSession',
    covers: ['statewright/testing recordSession'],
    ...size,
    prepare: sessionOf,
    run: ({ agent }) => recordSession(agent, 's'),
  }),
  row({
    name: 'the studio: the list of sessions',
    covers: ['studio sessions', 'studio visits'],
    from: 50,
    atMost: 400,
    prepare: shelf,
    run: async ({ store }) => [
      await studioOf(store).getSessions({ q: 'one', sort: 'status', offset: 0, limit: 60 }),
      await studioOf(store).getVisits(),
    ],
  }),
  row({
    name: 'the studio: a session',
    covers: ['studio session', 'studio end'],
    ...size,
    prepare: sessionOf,
    run: async ({ store }) => [await studioOf(store).getSession('s'), await studioOf(store).getEnd('s')],
  }),
  row({
    name: "the studio: a machine's session",
    covers: ['studio machine'],
    from: 50,
    atMost: 800,
    prepare: async (n) => {
      const store = memoryStore()
      const tallies = durable(tallyMachine, { store })
      await tallies.start('t')
      for (let i = 1; i <= n; i += 1) await tallies.send('t', { type: 'COUNT', from: 'a', n: i })
      await tallies.settled('t')
      return store
    },
    run: (store) => studioOf(store).getMachine('t'),
  }),
  row({
    name: 'the studio: a moment',
    covers: ['studio moment', 'studio moments', 'studio request'],
    ...size,
    prepare: sessionOf,
    run: async ({ store }) => [
      await studioOf(store).getMoment('s', 20),
      await studioOf(store).getRequest('s', { seq: 3, all: true }),
      await studioOf(store).getMoments('s', { first: 1, last: 20 }),
      await studioOf(store).getMoments('s', { first: 1, last: 20, latest: 5 }),
    ],
  }),
  row({
    name: 'the studio: two sessions side by side',
    covers: ['studio compare'],
    from: 25,
    atMost: 400,
    prepare: sessionOf,
    run: async ({ store, agent }) => studioOf(store).compareSessions('s', await agent.fork('s')),
  }),
  row({
    name: 'a chat: what was said',
    covers: ['statewright/ui chatHandler', 'chat read'],
    ...size,
    prepare: sessionOf,
    run: async (one) => (await chat(one)(page('/s'))).text(),
  }),
  row({
    name: 'a chat: joined again',
    covers: ['chat stream'],
    ...size,
    prepare: sessionOf,
    run: async (one) => (await chat(one)(page('/s/stream'))).text(),
  }),
  row({
    name: 'a chat: a message with all that was said before',
    covers: ['chat send'],
    from: 500,
    atMost: 8_000,
    prepare: async (n) => ({ one: await shelf(0), n }),
    run: async ({ one, n }) => {
      const headers = { 'content-type': 'application/json' }
      await (
        await chat(one)(page('', { method: 'POST', headers, body: message(`c${Math.random()}`, n) }))
      ).text()
    },
  }),
  row({
    name: 'a chat: the arguments of two calls that stream by turns',
    covers: [],
    from: 1000,
    atMost: 16_000,
    prepare: async (n) => Array.from({ length: n }, (_, seq) => createDelta(seq)),
    run: (deltas) => {
      const buffer = createReplayBuffer()
      for (const delta of deltas) buffer.push(delta)
      return buffer.createReader().takeEvents()
    },
  }),
  row({
    name: 'all that the studio shows of a session',
    covers: ['studio share'],
    from: 25,
    atMost: 400,
    prepare: sessionOf,
    run: ({ store }) => createSessionData(store, 's'),
  }),
  row({
    name: 'a film of a session of many records',
    covers: [],
    from: 1_000,
    atMost: 16_000,
    prepare: async (n) => {
      const data = await createSessionData((await sessionOf(25)).store, 's')
      const { rows } = data.session
      // Distinct turns, so that the search for repeats finds none.
      const many = Array.from({ length: n }, (_, i) => ({ ...rows[i % rows.length], label: `${i}` }))
      return { ...data, session: { ...data.session, rows: many as typeof rows } }
    },
    run: drawFilm,
  }),
]
