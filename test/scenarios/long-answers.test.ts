import { aguiHandler } from '../../src/agui/index.js'
import { createAgent, type ModelProvider, memoryStore, patternShield } from '../../src/index.js'
import { chatHandler } from '../../src/ui/index.js'
import { getUsedBytes, pieces } from '../support/kept-bytes.js'
import { plainAnswer } from '../support/manual-model.js'
import { sampledRows } from '../support/extent.js'

const answer = `It begins. ${'All is well. '.repeat(20_000)}It ends.`

function longWinded(store: ReturnType<typeof memoryStore>): ReturnType<typeof createAgent> {
  const model = {
    provider: 'manual',
    model: 'manual-1',
    request: () => Promise.resolve({ ...plainAnswer, text: answer }),
  }
  return createAgent({ model, store })
}

test('a log stores a long answer twice: as model output, and in the messages of the next snapshot', async () => {
  const store = memoryStore()
  await longWinded(store).run('Go.', { session: 's' }).result
  const stored = store.read('s').map(({ data }) => data.split('It begins.').length - 1)
  expect(stored.filter((times) => times > 0)).toEqual([1, 1])
})

test('content omitted from a snapshot is restored for the next run, a fork, a replay and the result', async () => {
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

describe('a long streamed answer', () => {
  const length = 4_000_000

  /** The maximum number of copies of its text in memory, during the stream and after its end. */
  async function played(
    page: 'chat' | 'agui',
    { isRead, isShielded }: Record<'isRead' | 'isShielded', boolean>,
  ) {
    let [before, most, size] = [0, 0, length]
    const measure = (): void => {
      most = Math.max(most, (getUsedBytes() - before) / length)
    }
    const model: ModelProvider = {
      provider: 'manual',
      model: 'manual-1',
      request: async (_, { onDelta }) => {
        let [text, count] = ['', 0]
        for (const piece of pieces(size)) {
          text += piece
          onDelta?.(piece, '')
          if ((count += 1) % 50 === 0) await new Promise(setImmediate)
        }
        measure()
        return { ...plainAnswer, text }
      },
    }
    const shields = { output: [patternShield({ action: 'block', patterns: [/forbidden/] })] }
    const store = memoryStore()
    const agent = createAgent({ model, store, ...(isShielded && { shields }) })
    const handler = (page === 'chat' ? chatHandler : aguiHandler)({ agent, authorize: 'none', path: '/' })
    const say = async (id: string): Promise<Response> => {
      const message = { id: 'u1', role: 'user', content: 'Go.', parts: [{ type: 'text', text: 'Go.' }] }
      const body = JSON.stringify({ id, threadId: id, runId: 'r1', messages: [message] })
      const headers = { 'content-type': 'application/json' }
      return handler(new Request('http://chat.test/', { method: 'POST', headers, body }))
    }
    // Excludes one-time module loads from the measurement.
    size = 10_000
    await (await say('warm')).text()
    ;[before, most, size] = [getUsedBytes(), 0, length]
    const response = await say('c1')
    const reader = (response.body as ReadableStream<Uint8Array>).getReader()
    if (isRead) while (!(await reader.read()).done);
    else while (store.get('c1')?.summary?.state !== 'COMPLETED') await new Promise(setImmediate)
    measure()
    await reader.cancel()
    expect(store.get('c1')?.summary).toMatchObject({ state: 'COMPLETED' })
    return most
  }

  // The in-memory store's log accounts for two copies. Shields keep a separate text and return the part to
  // show.
  const pages = [
    { page: 'chat', isRead: true, isShielded: false, times: 4 },
    { page: 'chat', isRead: false, isShielded: false, times: 4 },
    { page: 'chat', isRead: true, isShielded: true, times: 6 },
    { page: 'agui', isRead: false, isShielded: false, times: 4 },
    { page: 'agui', isRead: false, isShielded: true, times: 6 },
  ] as const
  it.each(sampledRows<(typeof pages)[number]>(pages))(
    'is in memory $times times at most, over $page, read: $isRead, shields: $isShielded',
    async ({ page, times, ...how }) => {
      expect(await played(page, how)).toBeLessThan(times + 0.6)
    },
  )
})
