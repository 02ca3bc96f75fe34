import { createAgent, memoryStore, openaiChat } from '../../src/index.js'
import type { SyncSessionStore } from '../../src/stores/index.js'
import { stage } from '../support/play.js'
import { tool } from '../support/tools.js'

const echo = tool('echo', ({ text }) => text, { readOnly: true })

/** The agent descriptions in the start records of a session's log. */
function definitions(store: SyncSessionStore, id: string): { hash?: string; name?: string }[] {
  return store
    .read(id)
    .filter(({ type }) => type === 'start')
    .map(({ data }) => (JSON.parse(data) as { definition: object }).definition)
}

test('the log identifies the agent of a run: another model, tool or instruction is another agent', async () => {
  const store = memoryStore()
  const play = await stage(
    [{ text: 'Done.' }],
    { store, instructions: 'Count.', tools: [echo] },
    'repeatLast',
  )
  const begin = async (id: string, more: object) => {
    const model = openaiChat({ model: 'gpt-test', baseURL: play.rehearsal.url, apiKey: 'none' })
    const options = { model, store, instructions: 'Count.', tools: [echo], ...more }
    await createAgent(options).run('Go.', { session: id }).result
    return definitions(store, id)[0]?.hash
  }
  const hashes = [
    await begin('same', {}),
    await begin('limits', { limits: { maxSteps: 3 } }),
    await begin('instructions', { instructions: 'Count twice.' }),
    await begin('tools', { tools: [] }),
    await begin('model', {
      model: openaiChat({ model: 'gpt-other', baseURL: play.rehearsal.url, apiKey: 'none' }),
    }),
  ]
  expect(hashes[0]).toMatch(/^[0-9a-f]{16}$/)
  expect(hashes[1]).toBe(hashes[0])
  expect(new Set(hashes).size).toBe(4)
})

test('the definition is in snapshots and forks, so that no process must read a log from its start', async () => {
  const store = memoryStore()
  const play = await stage([{ text: 'x'.repeat(70_000) }, { text: 'Done.' }], { store })
  await play.agent.run('Go.', { session: 's' }).result
  const [begun] = definitions(store, 's')
  const snapshot = store.read('s').find(({ type }) => type === 'snapshot')
  expect(JSON.parse(snapshot?.data ?? '{}')).toMatchObject({ definition: begun })
  const fork = await play.agent.fork('s')
  const [, stored] = store.read(fork)
  expect(JSON.parse(stored?.data ?? '{}')).toMatchObject({ definition: begun })
})
