import { createAgent, memoryStore, type SessionStore } from '../../src/index.js'
import { checkSessionLog } from '../../src/testing/index.js'
import { ManualModel, settled } from '../support/manual-model.js'
import { distant } from '../support/distant.js'

const tries = 500

it.each([
  ['synchronously', (store: SessionStore) => store],
  ['asynchronously', distant],
])(
  'a reply is delivered, whatever waits in the inbox of the session, in a store that answers %s',
  async (_how, wrap) => {
    const memory = memoryStore()
    const store = wrap(memory)
    const model = new ManualModel()
    const agent = createAgent({ model, store, interactive: true })
    const answer = async (count: number) => {
      for (let i = 0; i < tries && model.attempts.length < count; i += 1) await settled()
      model.pending?.answer({ text: 'Yes.' })
    }
    const run = agent.run('Hello.', { session: 's' })
    await answer(1)
    expect(await run.result).toMatchObject({ state: 'WAITING_FOR_INPUT' })
    const elsewhere = createAgent({ model: new ManualModel(), store })
    await elsewhere.send('s', { type: 'steer', text: 'Use euros.' })
    run.reply('And in May?')
    await answer(2)
    for (let i = 0; i < tries && run.state !== 'WAITING_FOR_INPUT'; i += 1) await settled()
    const texts = model.attempts.at(-1)?.request.messages.map(({ content }) => content)
    expect(texts).toEqual(expect.arrayContaining(['And in May?', 'Use euros.']))
    expect(checkSessionLog(memory.read('s'))).toBeNull()
    run.cancel()
  },
)
