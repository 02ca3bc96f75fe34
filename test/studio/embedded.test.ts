import { type AnyActorRef, createActor, sendTo, setup, toPromise } from 'xstate'
import { createAgent, defineTool, memoryJournal, memoryStore } from '../../src/index.js'
import { foldRecords } from '../../src/core/sessions/fold-session.js'
import { EmbeddedActors } from '../../src/studio/embedded-actors.js'
import type { MomentView, SessionsView, SessionView } from '../../src/studio/protocol.js'
import { paths } from '../../src/studio/routes.js'
import { createOneCallModel } from '../support/manual-model.js'
import { until } from '../support/play.js'
import { eventful, rehearsedAgent } from './rehearsed.js'
import { type Visitor, visit } from './visitor.js'

const only = async (visitor: Visitor) => {
  const { sessions } = await visitor.get<SessionsView>(paths.sessions)
  expect(sessions.length).toBeLessThan(2)
  return sessions[0]
}

const view = async (visitor: Visitor) =>
  visitor.get<SessionView>(paths.session((await only(visitor))?.id ?? ''))

const last = async (visitor: Visitor) => {
  const { session, rows } = await view(visitor)
  return visitor.get<MomentView>(paths.moment(session.id, rows.length))
}

async function begun(options: { agent?: boolean; by?: string } = {}) {
  const rehearsed = await rehearsedAgent(memoryStore(), eventful)
  const { agent } = rehearsed
  const { by } = options
  const visitor = await visit({ store: memoryStore(), ...(by && { by }), ...(options.agent && { agent }) })
  const actor = createActor(agent.machine, { input: 'Pay the invoice.' })
  const answer = async (body: object) => {
    const { pending } = await last(visitor)
    const { callId, fingerprint } = pending[0] ?? {}
    return visitor.post(paths.answers((await only(visitor))?.id ?? ''), { callId, fingerprint, ...body })
  }
  const waits = () => until(() => actor.getSnapshot().matches('WAITING_FOR_INPUT'))
  return { ...rehearsed, visitor, actor, answer, waits }
}

test('attaching starts nothing, and the page shows each transition, the transcript, and streamed text', async () => {
  const { visitor, actor, waits, close } = await begun()
  visitor.studio.attach(actor)
  expect(await only(visitor)).toBeUndefined()
  expect(actor.getSnapshot().context.steps).toBe(0)
  actor.start()
  visitor.studio.attach(actor)
  const { id = '' } = (await only(visitor)) ?? {}
  const feed = visitor.live(id)
  await feed.receive('text', ({ text }) => text.includes('look'))
  await waits()
  const { rows, session, verdict } = await view(visitor)
  expect(session).toMatchObject({
    id: actor.getSnapshot().context.runId,
    status: 'waiting',
    isAttached: true,
    title: 'Pay the invoice.',
  })
  expect(rows.slice(0, 2).map(({ type }) => type)).toEqual(['opened', 'start'])
  expect(rows.flatMap(({ transitionIds }) => transitionIds).length).toBeGreaterThan(10)
  expect(verdict.text).toBe('Waiting for you to approve pay.')
  const { transcript, actions } = await last(visitor)
  expect(transcript.map(({ text }) => text)).toContain('First I look it up.')
  expect(actions).toEqual(['approve', 'reject', 'cancel'])
  await feed.receive('rows', ({ rows: reported }) => reported.at(-1)?.seq === rows.length)
  actor.stop()
  await close()
})

test('an actor is answered in the page without an agent, and the tool runs once', async () => {
  const { visitor, actor, answer, waits, paid, close } = await begun({ by: 'ann' })
  actor.start()
  await waits()
  visitor.studio.attach(actor)
  expect((await view(visitor)).rows.map(({ type }) => type)).toEqual(['snapshot'])
  const stale = await answer({ type: 'approve', fingerprint: 'of-another-call' })
  expect(stale).toMatchObject({ status: 409, error: { code: 'stale_answer' } })
  const edited = await answer({ type: 'approve', editedInput: { amount: 1, to: 'Ada' } })
  expect(edited).toMatchObject({ status: 400, error: { code: 'invalid_input' } })
  expect(edited.error?.message).toContain('startStudio({ agent })')
  expect(await answer({ type: 'approve' })).toMatchObject({ status: 200 })
  await toPromise(actor)
  expect(paid).toEqual([120])
  const { session } = await view(visitor)
  expect(session).toMatchObject({ state: 'COMPLETED', status: 'ended', isAttached: false, holder: null })
  const { actions, transcript } = await last(visitor)
  expect(actions).toEqual([])
  const decisions = transcript.flatMap(({ calls }) => calls.flatMap(({ decision }) => decision ?? []))
  expect(decisions).toMatchObject([{ kind: 'approved', by: ['ann'] }])
  await close()
})

test('with the agent of its machine, edited arguments are validated by the schema of the tool', async () => {
  const { visitor, actor, answer, waits, paid, close } = await begun({ agent: true })
  visitor.studio.attach(actor)
  actor.start()
  await waits()
  expect((await last(visitor)).pending[0]?.schema).toMatchObject({ type: 'object' })
  const wrong = await answer({ type: 'approve', editedInput: { amount: -1, to: 'Ada' } })
  expect(wrong).toMatchObject({ status: 400, error: { code: 'invalid_input', key: 'call_pay' } })
  const approval = { type: 'approve', editedInput: { amount: 12, to: 'Ada' } }
  const both = await Promise.all([answer(approval), answer(approval)])
  expect(both.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 409])
  await toPromise(actor)
  expect(paid).toEqual([12])
  await close()
})

test('a run without an end is paused, steered, resumed, replied to and cancelled', async () => {
  const look = { toolCalls: [{ name: 'look_up', arguments: { what: 'it' } as never }], delayMs: 50 }
  const { agent, close } = await rehearsedAgent(memoryStore(), [look, { text: 'Yes?' }], {
    interactive: true,
  })
  const visitor = await visit({ store: memoryStore() })
  const actor = createActor(agent.machine, { input: 'Hello.' }).start()
  visitor.studio.attach(actor)
  const { id = '' } = (await only(visitor)) ?? {}
  const state = () => actor.getSnapshot().context.state
  const post = (body: object) => visitor.post(paths.answers(id), body)
  expect(await post({ type: 'pause' })).toMatchObject({ status: 200 })
  await until(() => state() === 'PAUSED')
  expect(await post({ type: 'steer', text: 'Be brief.' })).toMatchObject({ status: 200 })
  await until(() => state() === 'WAITING_FOR_INPUT')
  expect(await post({ type: 'resume' })).toMatchObject({ status: 409, error: { code: 'wrong_state' } })
  expect(await post({ type: 'reply', input: ' ' })).toMatchObject({ status: 400 })
  expect(await post({ type: 'reply', input: 'Go on.' })).toMatchObject({ status: 200 })
  await until(() => state() === 'WAITING_FOR_INPUT')
  expect(await post({ type: 'cancel', why: 'Enough.' })).toMatchObject({ status: 200 })
  expect(state()).toBe('CANCELLED')
  expect(JSON.stringify((await last(visitor)).transcript)).toContain('Be brief.')
  await close()
})

test('the child of a machine is attached; its parent, another machine and a missing actor are refused in one sentence', async () => {
  const { agent, close } = await rehearsedAgent(memoryStore(), [{ text: 'Done.' }])
  const visitor = await visit({ store: memoryStore() })
  const desk = setup({ actors: { agent: agent.machine } }).createMachine({
    initial: 'idle',
    states: {
      idle: { on: { GO: 'working' } },
      working: {
        invoke: { id: 'agent', src: 'agent', input: () => agent.createInput('Go.'), onDone: 'done' },
        on: { STOP: { actions: sendTo('agent', { type: 'CANCEL' }) } },
      },
      done: { type: 'final' },
    },
  })
  const parent = createActor(desk).start()
  const attach = (actor: AnyActorRef) => visitor.studio.attach(actor)
  expect(() => attach(parent)).toThrow('actor.getSnapshot().children.NAME')
  expect(() => attach(undefined as never)).toThrow('attach() takes a run')
  expect(() => attach({} as never)).toThrow('attach() takes a run')
  parent.send({ type: 'GO' })
  const child = parent.getSnapshot().children.agent
  if (child) attach(child)
  await toPromise(parent)
  expect(await only(visitor)).toMatchObject({ state: 'COMPLETED', status: 'ended' })
  await close()
})

test('a stopped actor is shown in its last state, and can be neither answered nor forked', async () => {
  const { visitor, actor, answer, close } = await begun({ agent: true })
  actor.start()
  visitor.studio.attach(actor)
  actor.stop()
  const { session, readOnly, rows } = await view(visitor)
  expect(session).toMatchObject({ status: 'interrupted', isAttached: false })
  expect(readOnly).toContain('embedded actor')
  expect((await last(visitor)).actions).toEqual([])
  for (const type of ['resume', 'cancel'])
    expect(await answer({ type })).toMatchObject({ status: 403, error: { code: 'read_only' } })
  const forked = await visitor.post(paths.fork(session.id), { at: rows.length })
  expect(forked).toMatchObject({ status: 403, error: { code: 'read_only' } })
  await close()
})

test('a restored actor replaces the one that it continues', async () => {
  const { visitor, actor, agent, waits, close } = await begun()
  visitor.studio.attach(actor)
  actor.start()
  await waits()
  const snapshot = actor.getPersistedSnapshot()
  actor.stop()
  const restored = createActor(agent.machine, { snapshot }).start()
  visitor.studio.attach(restored)
  expect((await view(visitor)).rows.map(({ type }) => type)).toEqual(['snapshot'])
  expect(await only(visitor)).toMatchObject({ status: 'waiting', isAttached: true })
  restored.send({ type: 'REJECT', callId: 'call_pay', why: 'No.' })
  await toPromise(restored)
  expect(await only(visitor)).toMatchObject({ state: 'COMPLETED' })
  await close()
})

test('the log leads to the state of the actor, wherever it was attached, and its own journal is complete', async () => {
  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    input: { type: 'object' },
    needsApproval: true,
    execute: () => 'paid',
  })
  const agent = createAgent({ model: createOneCallModel('pay'), tools: [pay] })
  const seen = new Set<string>()
  const play = async (attachAt: number) => {
    const journal = memoryJournal()
    const actor = createActor(agent.machine, { input: agent.createInput('Pay.', { journal }) })
    const embedded = new EmbeddedActors()
    let count = 0
    const attach = () => {
      if (count === attachAt) embedded.attach(actor)
      count += 1
    }
    attach()
    // An event listener runs in the middle of a transition. A state observer runs after it.
    actor.on('*', ({ type }) => {
      seen.add(type)
      attach()
    })
    actor.subscribe({ next: attach })
    actor.start()
    await until(() => actor.getSnapshot().matches('WAITING_FOR_INPUT'))
    actor.send({ type: 'APPROVE', callId: 'a' })
    await toPromise(actor)
    const id = actor.getSnapshot().context.runId
    const { run } = foldRecords(await embedded.addTo(memoryStore()).read(id), id)
    const { status, context, value } = actor.getSnapshot()
    expect([attachAt, run?.status, run?.value, run?.context]).toEqual([attachAt, status, value, context])
    return { count, entries: journal.entries.map(({ type }) => type) }
  }
  const { count, entries } = await play(0)
  expect([...seen]).toEqual(expect.arrayContaining(['approval_requested', 'tool_result']))
  for (let at = 1; at < count; at += 1) {
    expect((await play(at)).entries).toEqual(entries)
  }
})

test('the last hundred completed actors are kept', async () => {
  const model = { provider: 'p', model: 'm', request: () => Promise.reject(new Error('Not asked.')) }
  const agent = createAgent({ model })
  const embedded = new EmbeddedActors()
  const shown = embedded.addTo(memoryStore())
  for (let i = 0; i < 130; i += 1) {
    const actor = createActor(agent.machine, { input: `Question ${i}.` }).start()
    embedded.attach(actor)
    actor.stop()
  }
  const working = createActor(agent.machine, { input: 'And you?' }).start()
  embedded.attach(working)
  expect(await shown.list()).toHaveLength(101)
  working.stop()
})

test('a closed studio follows no actors', async () => {
  const { visitor, actor, close } = await begun()
  visitor.studio.attach(actor)
  await visitor.studio.close()
  actor.start()
  await until(() => actor.getSnapshot().matches('WAITING_FOR_INPUT'))
  actor.stop()
  await close()
})
