import { memoryStore } from '../../src/index.js'
import type { Turn } from '../../src/rehearsal/index.js'
import { listRunSteps } from '../../src/studio/run-steps.js'
import type { CompareView } from '../../src/studio/compare-sessions.js'
import type { SessionView } from '../../src/studio/protocol.js'
import { paths } from '../../src/studio/routes.js'
import { rehearsedAgent } from './rehearsed.js'
import { visit } from './visitor.js'

const look: Turn = {
  text: 'Let me look.',
  toolCalls: [{ name: 'look_up', arguments: { what: 'tea' }, id: 'a' }],
}
const down: Turn = { status: 503, error: { message: 'Overloaded.' } }

/** A session that ends as these turns say, compared with its fork after the first result, which answers. */
async function compareFork(turns: readonly Turn[], options = {}) {
  const store = memoryStore()
  const first = await rehearsedAgent(store, turns, { retry: { maxAttempts: 3, baseDelayMs: 1 }, ...options })
  await first.agent.run('Tea?', { session: 's' }).result
  const visitor = await visit({ store })
  const original = await visitor.get<SessionView>(paths.session('s'))
  const at = original.rows.find(({ calls }) => calls.length > 0)?.seq ?? 0
  const second = await rehearsedAgent(store, [{ text: 'It is tea.' }])
  const fork = await second.agent.fork('s', at, { edit: { call: 'a', result: 'Tea: black.' } })
  await (await second.agent.resume(fork)).result
  await Promise.all([first.close(), second.close()])
  return { original, view: await visitor.get<CompareView>(paths.compare('s', fork)) }
}

test('a request that failed is a step, with its failure instead of an answer', async () => {
  const { original, view } = await compareFork([look, down, down, down])
  expect(original.verdict.state).toBe('ERROR')
  const failed = listRunSteps(original).at(-1)
  expect(view.steps).toHaveLength(2)
  expect(view.steps[1]).toMatchObject({
    isSame: false,
    a: {
      text: '',
      failure: expect.stringMatching(/failed/),
      ms: (failed?.ms ?? 0) - (failed?.waitMs ?? 0),
      seq: original.rows.length,
    },
    b: { text: 'It is tea.', failure: null },
  })
  expect(view.steps.map(({ a, b }) => [a?.isInherited, b?.isInherited])).toEqual([
    [false, true],
    [false, false],
  ])
  expect(view.answers).toEqual({ a: '', b: 'It is tea.' })
})

test('the words before a call are not the answer of a run that ended without one', async () => {
  const { original, view } = await compareFork([look, look], { limits: { maxSteps: 2 } })
  expect(original.verdict.state).toBe('MAX_STEPS')
  expect(view.steps[1]?.a?.text).toBe('Let me look.')
  expect(view.answers).toEqual({ a: '', b: 'It is tea.' })
})
