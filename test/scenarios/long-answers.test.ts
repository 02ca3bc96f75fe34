import { createAgent, memoryStore } from '../../src/index.js'
import { plainAnswer } from '../support/manual-model.js'

const answer = `It begins. ${'All is well. '.repeat(20_000)}It ends.`

function longWinded(store: ReturnType<typeof memoryStore>): ReturnType<typeof createAgent> {
  const model = {
    provider: 'manual',
    model: 'manual-1',
    request: () => Promise.resolve({ ...plainAnswer, text: answer }),
  }
  return createAgent({ model, store })
}

test('a log keeps a long answer twice: in what the model said, and in the messages of the snapshot behind it', async () => {
  const store = memoryStore()
  await longWinded(store).run('Go.', { session: 's' }).result
  const kept = store.read('s').map(({ data }) => data.split('It begins.').length - 1)
  expect(kept.filter((times) => times > 0)).toEqual([1, 1])
})

test('what a snapshot leaves out is there again: for the next run, a fork, a replay and who asks for the result', async () => {
  const store = memoryStore()
  const agent = longWinded(store)
  const result = await agent.run('Go.', { session: 's' }).result
  const { run } = await agent.replay('s')
  expect(run).toMatchObject({ state: 'COMPLETED', output: answer, messages: result.messages })
  const { snapshot } = await agent.replay('s')
  expect(snapshot).toMatchObject({ output: result, context: { output: answer } })
  const fork = await agent.fork('s')
  expect((await agent.replay(fork)).run).toMatchObject({ output: answer })
  const again = await agent.run('Go on.', { session: fork }).result
  expect(again.messages).toHaveLength(4)
  expect((await (await agent.resume('s')).result).output).toBe(answer)
})
