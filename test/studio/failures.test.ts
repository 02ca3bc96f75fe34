import { z } from 'zod'
import { createAgent, defineTool, memoryStore, openaiChat, type SessionStore } from '../../src/index.js'
import { createStepFilter, listRunSteps } from '../../src/studio/run-steps.js'
import { SessionCatalogue } from '../../src/studio/session-catalogue.js'
import { SessionLibrary } from '../../src/studio/session-library.js'
import type { MomentView, SessionView } from '../../src/studio/protocol.js'
import { describeChange, listChanges } from '../../src/studio/client/fork-choices.js'
import { paths } from '../../src/studio/routes.js'
import { rehearsedAgent } from './rehearsed.js'
import { visit } from './visitor.js'

const weather = defineTool({
  name: 'weather',
  description: 'Tells the weather.',
  input: z.object({ city: z.string() }),
  execute: ({ city }) => {
    if (city === 'Lisbon') throw new Error('The upstream answered HTTP 503.')
    return 'sunny'
  },
})
const ask = (city: string) => ({ toolCalls: [{ name: 'weather', arguments: { city } }] })

async function fill(): Promise<SessionStore> {
  const store = memoryStore()
  for (const [session, city] of [
    ['bad', 'Lisbon'],
    ['good', 'Porto'],
  ] as const) {
    const { agent, close } = await rehearsedAgent(store, [ask(city), { text: 'Sunny.' }], {
      tools: [weather],
    })
    await agent.run('And the weather?', { session }).result
    await close()
  }
  return store
}

describe('a failed call', () => {
  it('is found from the list by its tool, by any tool and by its error, and counted in the row', async () => {
    const store = await fill()
    const catalogue = new SessionCatalogue(new SessionLibrary(store, () => false))
    await catalogue.refresh(0)
    await catalogue.readLogs(() => Promise.resolve(true))
    const find = (q: string) => catalogue.find({ q, sort: 'status', offset: 0, limit: 60 })
    for (const q of ['failed:weather', 'failed:*', 'tool:weather failed:weather', '503'])
      expect(find(q).sessions.map(({ id, state, failedCalls }) => [id, state, failedCalls])).toEqual([
        ['bad', 'COMPLETED', 1],
      ])
    expect(find('failed:pay').sessions).toEqual([])
    const { facets, sessions } = find('tool:weather')
    expect(facets.failed).toEqual([['weather', 1]])
    expect(sessions.find(({ id }) => id === 'good')?.failedCalls).toBe(0)
    const visitor = await visit({ store })
    const steps = listRunSteps(await visitor.get<SessionView>(paths.session('bad')))
    expect(steps.map(createStepFilter('failed:weather'))).toEqual([true, false])
    expect(steps.map(createStepFilter('failed:*'))).toEqual([true, false])
  })
})

test('What if offers every change of a session, the latest first', async () => {
  const visitor = await visit({ store: await fill() })
  const { rows } = await visitor.get<SessionView>(paths.session('good'))
  const moment = await visitor.get<MomentView>(paths.moment('good', rows.length))
  const instructions = { text: 'Be brief.', from: 'agent' as const, forkAt: 2 }
  expect(listChanges({ ...moment, instructions }).map(describeChange)).toEqual([
    'result of weather({"city":"Porto"}), ok',
    'arguments of weather({"city":"Porto"}), ok',
    'message: And the weather?',
    'instructions',
  ])
})

test('a session of another agent shows a warning before it continues, and one of the same agent does not', async () => {
  const store = memoryStore()
  const turns = [{ toolCalls: [{ name: 'pay', arguments: { amount: 1, to: 'Ada' } }] }]
  const first = await rehearsedAgent(store, turns, { instructions: 'You pay bills.' })
  const other = await rehearsedAgent(store, turns, { instructions: 'You refuse bills.' })
  await first.agent.run('Pay.', { session: 's' }).result
  await Promise.all([first.close(), other.close()])
  const warned = async (agent: typeof first.agent | undefined) =>
    (await (await visit({ store, ...(agent && { agent }) })).get<SessionView>(paths.session('s'))).otherAgent
  expect(await warned(first.agent)).toBeNull()
  expect(await warned(undefined)).toBeNull()
  expect(await warned(other.agent)).toBe(
    "A different agent started this run. Resume, Approve and What if use this studio's agent, which has different instructions, tools or models.",
  )
  // Names the models only if they differ.
  const model = openaiChat({ model: 'other', baseURL: 'http://127.0.0.1:9', apiKey: 'none' })
  expect(await warned(createAgent({ model, store, prices: null }) as typeof first.agent)).toBe(
    "A different agent (rehearsal) started this run. Resume, Approve and What if use this studio's agent (other), which has different instructions, tools or models.",
  )
})
