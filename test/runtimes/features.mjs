// The features to test in every runtime. Each feature is a function that throws on failure. `loadFileStore` is missing in runtimes
// without files, `objects` in runtimes without Durable Objects.
import { createAgent, defineTool, memoryStore, openaiChat } from 'statewright'
import { chatHandler } from 'statewright/ui'

const add = defineTool({
  name: 'add',
  description: 'Adds two numbers.',
  input: {
    type: 'object',
    properties: { a: { type: 'number' }, b: { type: 'number' } },
    required: ['a', 'b'],
    additionalProperties: false,
  },
  execute: ({ a, b }) => a + b,
})

function expect(holds, what) {
  if (!holds) throw new Error(what)
}

/** An agent with the model at a base URL. The model name selects the script. */
function createAdder(url, scenario, more = {}) {
  const model = openaiChat({ model: `rehearsal/${scenario}`, baseURL: url, apiKey: 'none' })
  return createAgent({ model, tools: [add], ...more })
}

/** One run of Ann's session. */
export async function playSession(url, store, words) {
  const { state, messages } = await createAdder(url, 'session', { store }).run(words, { session: 'ann' })
    .result
  return { state, messages: messages.length }
}

async function keepsSession(url, store, reopen) {
  await playSession(url, store, 'My name is Ann.')
  const later = await reopen(store)
  const { state, messages } = await playSession(url, later, 'Who am I?')
  await later.close?.()
  expect(state === 'COMPLETED' && messages === 4, `${state} with ${messages} messages`)
}

function listFeatures(url, { loadFileStore, objects }) {
  return {
    'run with a tool call': async () => {
      const { state, output, error } = await createAdder(url, 'call').run('What is 19 + 23?').result
      expect(state === 'COMPLETED' && output === '19 + 23 is 42.', `${state}: ${output ?? error?.message}`)
    },
    stream: async () => {
      const chunks = []
      const run = createAdder(url, 'stream').run('Count.')
      for await (const event of run) if (event.type === 'stream_chunk' && event.text) chunks.push(event.text)
      expect(
        chunks.length > 2 && chunks.join('') === 'One, two, three, four, five, six.',
        JSON.stringify(chunks),
      )
    },
    'retry after a broken stream': async () => {
      const retry = { maxAttempts: 2, baseDelayMs: 1 }
      const { state, output, error } = await createAdder(url, 'cut', { retry }).run('Count.').result
      expect(state === 'COMPLETED' && output === 'Whole.', `${state}: ${output ?? error?.message}`)
    },
    cancel: async () => {
      const run = createAdder(url, 'hang').run('Wait.')
      for await (const event of run) if (event.type === 'stream_chunk') run.cancel('Enough.')
      const { state } = await run.result
      expect(state === 'CANCELLED', state)
    },
    'session in memory': () => keepsSession(url, memoryStore(), (store) => store),
    ...(loadFileStore && {
      'session in files': async () => {
        const open = await loadFileStore()
        await keepsSession(url, open(), async (store) => {
          await store.close()
          return open()
        })
      },
    }),
    ...objects?.(expect),
    'chat page': async () => {
      const agent = createAdder(url, 'call', { store: memoryStore() })
      const answer = chatHandler({ agent, authorize: 'none' })
      const response = await answer(
        new Request('http://localhost/api/chat', {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'x-ai-sdk': '7' },
          body: JSON.stringify({
            id: 'c1',
            messages: [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Add.' }] }],
          }),
        }),
      )
      const text = await response.text()
      expect(response.status === 200 && text.includes('19 + 23 is 42.'), `${response.status}: ${text}`)
    },
  }
}

/** Runs all features in sequence. Returns null or the error for each name. */
export async function playAll(url, stores) {
  const played = {}
  for (const [name, play] of Object.entries(listFeatures(url, stores))) {
    played[name] = await play().then(
      () => null,
      (error) => `${error?.name}: ${error?.message}`,
    )
  }
  return played
}
