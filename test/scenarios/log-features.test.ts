import {
  type AgentOptions,
  createAgent,
  defineAgents,
  defineShield,
  defineTool,
  handoff,
  memoryStore,
  ModelError,
  type ModelProvider,
  runSession,
  sleepUntil,
  type StoreError,
  toolSearch,
} from '../../src/index.js'
import { type LogFeature, knownFeatures } from '../../src/core/sessions/log/log-features.js'
import { clearRecords } from '../../src/core/sessions/clear-records.js'
import { skills } from '../../src/skills/index.js'
import type { SyncSessionStore } from '../../src/stores/index.js'
import { createRecordedAgent, recordSession } from '../../src/testing/index.js'
import { book } from '../support/asking.js'
import { call, createOneCallModel, plainAnswer } from '../support/manual-model.js'
import { sampledRows } from '../support/extent.js'
import { faults } from '../support/record-faults.js'
import { tool } from '../support/tools.js'
import { folderOf, removeFolders, skillFile } from '../skills/support.js'

afterAll(removeFolders)

const input = { type: 'object' as const }
const pay = () => tool('pay', () => 'Paid.', { needsApproval: true })
/** Has the tools of the options called, each of them once, and rests at the approval of `pay`. */
const asking = (...names: string[]): ModelProvider => ({
  ...createOneCallModel('pay'),
  request: ({ messages }) => {
    const name = names[messages.filter(({ role }) => role === 'tool').length] ?? 'pay'
    return Promise.resolve({ ...plainAnswer, toolCalls: [call('a', name)], finishReason: 'tool_calls' })
  },
})
const agentOf = (options: Partial<AgentOptions>) =>
  createAgent({ model: asking(), tools: [pay()], ...options } as AgentOptions)

/** Leaves a session 's' whose log uses the feature. A feature without a scene does not compile. */
const scenes: Record<LogFeature, (store: SyncSessionStore) => Promise<unknown>> = {
  answer_shields: async (store) => {
    const mind = defineShield({ name: 'mind', check: () => ({ action: 'allow' }) })
    const run = agentOf({ store, shields: { input: [mind], toolInput: [mind], toolOutput: [mind] } }).run(
      'Go.',
      {
        session: 's',
      },
    )
    const [asked] = (await run.result).pending ?? []
    if (asked) run.reject(asked, 'No.')
    return run.result
  },
  call_caps: (store) => {
    const look = defineTool({
      name: 'look',
      description: 'Looks.',
      input,
      maxCalls: 3,
      execute: () => 'Seen.',
    })
    return agentOf({ store, tools: [look, pay()] }).run('Go.', { session: 's' }).result
  },
  deferred_tools: (store) => {
    const look = defineTool({
      name: 'look',
      description: 'Looks.',
      input,
      defer: true,
      execute: () => 'Seen.',
    })
    return agentOf({ store, model: asking('look', 'look'), tools: [look, pay(), toolSearch()] }).run('Go.', {
      session: 's',
    }).result
  },
  elicitation: (store) =>
    agentOf({ store, model: asking('book'), tools: [book()] }).run('Go.', { session: 's' }).result,
  ending_results: (store) => agentOf({ store, stopWhen: () => false }).run('Go.', { session: 's' }).result,
  fork_terms: async (store) => {
    const agent = agentOf({ store })
    await agent.run('Go.', { session: 'origin' }).result
    const fork = await agent.fork('origin', undefined, { askFirst: true })
    const lease = store.acquire('s', { holder: 'the test', ttlMs: 1000 })
    store.append(lease, store.read(fork), store.get(fork)?.summary ?? undefined)
    store.release(lease)
  },
  handles: (store) => {
    const job = defineTool({
      name: 'job',
      description: 'Works.',
      input,
      keepsHandle: true,
      execute: async (_, { keepHandle }) => {
        await keepHandle?.({ id: 1 })
        return 'Done.'
      },
    })
    return agentOf({ store, model: asking('job'), tools: [job, pay()] }).run('Go.', { session: 's' }).result
  },
  handoffs: (store) => {
    const billing = agentOf({})
    const to = handoff(billing, { name: 'billing', description: 'Bills.' })
    return agentOf({ store, model: asking('transfer_to_billing'), tools: [to] }).run('Go.', { session: 's' })
      .result
  },
  hosted_calls: (store) => {
    const hosted = { ...call('h', 'zip'), hosted: { from: 'openai', server: 'zip' } }
    const model: ModelProvider = {
      ...asking(),
      request: () => Promise.resolve({ ...plainAnswer, toolCalls: [hosted], finishReason: 'tool_calls' }),
    }
    return agentOf({ store, model }).run('Go.', { session: 's' }).result
  },
  prepared_steps: (store) =>
    agentOf({ store, prepareStep: () => ({ instructions: 'Be brief.' }) }).run('Go.', { session: 's' })
      .result,
  queue: async (store) => {
    const agent = createAgent({ model: createOneCallModel('look'), tools: [tool('look')], store })
    await agent.run('Go.', { session: 's' }).result
    await agent.send('s', { type: 'message', when: 'next', input: 'And then?' })
    return runSession(agent, { session: 's' })
  },
  refusals: (store) => {
    const model: ModelProvider = {
      ...asking(),
      request: (request, options) => {
        if (!JSON.stringify(request.messages).includes('image_url')) return asking().request(request, options)
        const refused = { what: 'media' as const }
        throw new ModelError({ kind: 'fatal', code: 'bad_picture', message: 'No.', refused })
      },
    }
    return agentOf({ store, model }).run([{ type: 'image', image: 'iVBORw0KGgo=' }], { session: 's' }).result
  },
  skills: (store) => {
    const all = skills({ dirs: [folderOf({ 'review/SKILL.md': skillFile('review') })] })
    return agentOf({ store, skills: all }).run('Go.', { session: 's' }).result
  },
  sleep: (store) =>
    agentOf({
      store,
      model: asking('nap'),
      tools: [tool('nap', () => sleepUntil(Date.now() + 1e9)), pay()],
    }).run('Go.', { session: 's' }).result,
}

/** Everything that reads the log of a session. */
const readings: Record<string, (store: SyncSessionStore) => Promise<unknown>> = {
  resume: (store) => agentOf({ store }).resume('s'),
  run: (store) => agentOf({ store }).run('Go on.', { session: 's' }).result,
  runSession: (store) => runSession(defineAgents({ a: agentOf({ store }) }), { session: 's' }),
  replay: (store) => agentOf({ store }).replay('s'),
  readSession: (store) => agentOf({ store }).readSession('s'),
  fork: (store) => agentOf({ store }).fork('s'),
  'fork with askFirst': (store) => agentOf({ store }).fork('s', undefined, { askFirst: true }),
  branch: (store) => agentOf({ store }).branch('s', { from: 'm1' }).result,
  listBranches: (store) => agentOf({ store }).listBranches('s'),
  selectBranch: (store) => agentOf({ store }).selectBranch('s', 1),
  'tell cancel': (store) => agentOf({ store }).send('s', { type: 'cancel' }),
  'tell resume': (store) => agentOf({ store }).send('s', { type: 'resume' }),
  'tell approve': (store) => agentOf({ store }).send('s', { type: 'approve', callId: 'a' }),
  recordSession: (store) => recordSession(agentOf({ store }), 's'),
  clearRecords: async (store) => {
    const { problem } = clearRecords(store.read('s'), 's')
    if (problem) throw problem as Error
  },
}

const readsAsOlder = async <Value>(feature: LogFeature, work: () => Promise<Value>): Promise<Value> => {
  knownFeatures.delete(feature)
  try {
    return await work()
  } finally {
    knownFeatures.add(feature)
  }
}

const snapshotOf = (store: SyncSessionStore) =>
  JSON.stringify(store.list({ children: true }).map(({ id, head }) => [id, head, store.inbox.read(id)]))

describe.each(sampledRows(Object.keys(scenes) as LogFeature[]))('a log that uses %s', (feature) => {
  let store: SyncSessionStore
  beforeEach(async () => {
    store = memoryStore()
    await scenes[feature](store)
  })

  it('names it once, and its records are as the schema has them', () => {
    const { records } = clearRecords(store.read('s'), 's')
    const named = records.flatMap(({ type, needs = [] }) => (type === 'snapshot' ? [] : needs))
    const snapshots = records.flatMap(({ type, needs = [] }) => (type === 'snapshot' ? needs : []))
    expect([...named, ...snapshots]).toContain(feature)
    expect(named.filter((name) => name === feature).length).toBeLessThanOrEqual(1)
    expect(records.flatMap(faults)).toEqual([])
  })

  it('is refused by a Statewright without it wherever it is read, and not changed', async () => {
    const before = snapshotOf(store)
    await readsAsOlder(feature, async () => {
      for (const [name, read] of Object.entries(readings)) {
        // oxlint-disable-next-line no-await-in-loop -- each finds the session as it was
        const error = await read(store).then(
          () => null,
          (reason: unknown) => reason,
        )
        const { code, subject, message } = (error ?? {}) as Partial<StoreError>
        expect([name, code, subject]).toEqual([name, 'newer_log', 's'])
        expect(message).toContain(feature)
        expect(snapshotOf(store)).toBe(before)
        expect(store.get('s')?.holder).toBeNull()
      }
    })
  })

  it('is still named where its snapshot is all that is read, and the session can be deleted', async () => {
    await agentOf({ store })
      .send('s', { type: 'cancel' })
      .catch(() => undefined)
    const look = tool('look')
    const model = createOneCallModel('look')
    const billing = handoff(createAgent({ model, tools: [look] }), { name: 'billing', description: 'Bills.' })
    await agentOf({ store, model, tools: [look, billing] }).run('x'.repeat(70_000), { session: 's' }).result
    const tail = store.read('s', { from: 'snapshot' })
    expect(tail[0]?.type).toBe('snapshot')
    expect((JSON.parse(tail[0]?.data ?? '{}') as { needs: string[] }).needs).toContain(feature)
    await readsAsOlder(feature, async () => {
      expect(await agentOf({ store }).deleteSession('s')).toBe(true)
    })
    expect(store.get('s')).toBeNull()
  })
})

it('a log of a default agent names nothing, and its version is the one that every Statewright reads', async () => {
  const store = memoryStore()
  const agent = createAgent({ model: createOneCallModel('pay'), tools: [pay()], store })
  const run = agent.run('Go.', { session: 's' })
  const [asked] = (await run.result).pending ?? []
  if (asked) run.approve(asked)
  await run.result
  const { records } = clearRecords(store.read('s'), 's')
  expect(
    records.flatMap((record) => [record.needs ?? [], 'version' in record ? [record.version] : []].flat()),
  ).toEqual([2])
})

it('a recording that needs more than is known is refused, too', async () => {
  const store = memoryStore()
  await scenes.sleep(store)
  const recording = JSON.parse(JSON.stringify(await recordSession(agentOf({ store }), 's'))) as never
  const agent = createRecordedAgent(recording)
  expect(agent).toBeDefined()
  await readsAsOlder('sleep', async () => {
    expect(() => createRecordedAgent(recording)).toThrow(expect.objectContaining({ code: 'newer_recording' }))
  })
})
