import {
  type AgentOptions,
  createAgent,
  defineAgents,
  memoryStore,
  runSession,
  type StoreError,
} from '../../src/index.js'
import { logFeatures } from '../../src/core/sessions/log/log-record.js'
import { clearRecords } from '../../src/core/sessions/clear-records.js'
import type { SyncSessionStore } from '../../src/stores/index.js'
import { createRecordedAgent, recordSession } from '../../src/testing/index.js'
import { createOneCallModel } from '../support/manual-model.js'
import { faults } from '../support/record-faults.js'
import { tool } from '../support/tools.js'

/** A feature of a later version, used by runs that start with the input 'Later.' */
const feature = 'later_feature'
const addFeature = () => {
  logFeatures[feature] = (record) => record.type !== 'opened' && JSON.stringify(record).includes('Later.')
}
const removeFeature = () => {
  delete logFeatures[feature]
}
beforeEach(addFeature)
afterEach(removeFeature)

const pay = () => tool('pay', () => 'Paid.', { needsApproval: true })
const agentOf = (options: Partial<AgentOptions>) =>
  createAgent({ model: createOneCallModel('pay'), tools: [pay()], ...options } as AgentOptions)

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
  'send cancel': (store) => agentOf({ store }).send('s', { type: 'cancel' }),
  'send resume': (store) => agentOf({ store }).send('s', { type: 'resume' }),
  'send approve': (store) => agentOf({ store }).send('s', { type: 'approve', callId: 'a' }),
  recordSession: (store) => recordSession(agentOf({ store }), 's'),
  clearRecords: async (store) => {
    const { problem } = clearRecords(store.read('s'), 's')
    if (problem) throw problem as Error
  },
}

const snapshotOf = (store: SyncSessionStore) =>
  JSON.stringify(store.list({ children: true }).map(({ id, head }) => [id, head, store.inbox.read(id)]))

describe('a log that uses a feature of a later version', () => {
  let store: SyncSessionStore
  beforeEach(async () => {
    store = memoryStore()
    await agentOf({ store }).run('Later.', { session: 's' }).result
  })

  it('names the feature once, and matches the schema', () => {
    const { records } = clearRecords(store.read('s'), 's')
    expect(records.flatMap(({ needs = [] }) => needs)).toEqual([feature])
    expect(records.flatMap(faults)).toEqual([])
  })

  it('is refused and left unchanged by a version without the feature', async () => {
    const before = snapshotOf(store)
    removeFeature()
    for (const [name, read] of Object.entries(readings)) {
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

  it('names the feature in its snapshots, and can be deleted by a version without it', async () => {
    await agentOf({ store }).send('s', { type: 'cancel' })
    const look = tool('look')
    const model = createOneCallModel('look')
    await agentOf({ store, model, tools: [look] }).run('x'.repeat(70_000), { session: 's' }).result
    const tail = store.read('s', { from: 'snapshot' })
    expect(tail[0]?.type).toBe('snapshot')
    expect((JSON.parse(tail[0]?.data ?? '{}') as { needs: string[] }).needs).toContain(feature)
    removeFeature()
    expect(await agentOf({ store }).deleteSession('s')).toBe(true)
    expect(store.get('s')).toBeNull()
  })

  it('makes a recording that a version without the feature refuses', async () => {
    const recording = JSON.parse(JSON.stringify(await recordSession(agentOf({ store }), 's'))) as never
    expect(createRecordedAgent(recording)).toBeDefined()
    removeFeature()
    expect(() => createRecordedAgent(recording)).toThrow(expect.objectContaining({ code: 'newer_recording' }))
  })
})

it('a log that uses no feature has version 1 and names none', async () => {
  const store = memoryStore()
  const agent = agentOf({ store })
  const run = agent.run('Go.', { session: 's' })
  const [question] = (await run.result).pending ?? []
  if (question) run.approve(question)
  await run.result
  const { records } = clearRecords(store.read('s'), 's')
  expect(
    records.flatMap((record) => [record.needs ?? [], 'version' in record ? [record.version] : []].flat()),
  ).toEqual([1])
})
