import { OpenAI } from 'openai'
import { memory, restoreMemory } from '../../src/memory/memory.js'
import { handbook } from './support/handbook.js'
import { startServer, type TestServer } from './support/server.js'

interface EmbeddingRequest {
  model: string
  input: string[]
  dimensions?: number
}

/** The topics of a text as a vector: holidays, machines, journeys. */
const meanings = [/vacation|holiday|leave|days off/i, /laptop|computer|machine/i, /train|taxi|journey/i]
const embed = (text: string) => meanings.map((meaning) => (meaning.test(text) ? 1 : 0.1))

let server: TestServer
let requests: EmbeddingRequest[]
/** Statuses of the next responses, followed by 200. */
let statuses: number[]
let answer: (request: EmbeddingRequest) => unknown
let received: () => void

beforeAll(async () => {
  server = await startServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => (body += chunk))
    request.on('end', () => {
      const parsed = JSON.parse(body) as EmbeddingRequest
      requests.push(parsed)
      received()
      const reply = answer(parsed)
      const status = statuses.shift() ?? 200
      if (reply === undefined) return
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(reply))
    })
  })
})

afterAll(async () => {
  await server.close()
})

beforeEach(() => {
  requests = []
  statuses = []
  received = () => {}
  answer = ({ input }) => ({
    // In the wrong order. Only the index identifies the input.
    data: input.map((text, index) => ({ index, embedding: embed(text) })).toReversed(),
  })
})

const client = (maxRetries = 0) => new OpenAI({ baseURL: server.url, apiKey: 'key', maxRetries })
const options = (more = {}) => ({ embeddings: { client: client(), model: 'small', ...more } })
const inputs = () => requests.map(({ input }) => input)

it('finds by meaning, without common words', async () => {
  const known = memory({ documents: handbook, ...options() })
  expect((await known.retrieve('days off work: computer'))[0]?.source).not.toBe('travel.md')
  expect((await known.retrieve('holiday'))[0]?.source).toBe('leave.md')
  expect((await known.retrieve('journey'))[0]?.source).toBe('travel.md')
})

it('hybrid search also counts words, and vector search does not', async () => {
  const documents = [
    { source: 'a', text: 'About code X-17' },
    { source: 'b', text: 'About other things' },
  ]
  const hybrid = await memory({ documents, ...options() }).retrieve('X-17')
  expect(hybrid.map(({ source }) => source)).toEqual(['a', 'b'])
  expect(hybrid[0]?.score).toBeGreaterThan(hybrid[1]?.score ?? 0)
  const vector = await memory({ documents, ...options({ mode: 'vector' }) }).retrieve('X-17')
  expect(vector.map(({ score }) => score)).toEqual([expect.closeTo(1), expect.closeTo(1)])
})

it('minScore of a vector search is the cosine', async () => {
  const known = memory({ documents: handbook, minScore: 0.9, ...options({ mode: 'vector' }) })
  expect((await known.retrieve('holiday')).map(({ source }) => source)).toEqual(['leave.md'])
})

it('requests nothing before the first search, then batches, and each text once', async () => {
  const known = memory({ documents: handbook, ...options({ batch: 2, dimensions: 3 }) })
  expect(requests).toEqual([])
  await known.retrieve('taxi')
  expect(inputs().map(({ length }) => length)).toEqual([2, 1, 1])
  expect(requests[0]).toMatchObject({ model: 'small', dimensions: 3, encoding_format: 'float' })

  known.add([
    { source: 'copy.md', text: handbook[0]?.text ?? '' },
    { source: 'new.md', text: 'A new train.' },
  ])
  await known.retrieve('taxi')
  expect(inputs().slice(3)).toEqual([['A new train.'], ['taxi']])
})

it('sends half of a surrogate pair as U+FFFD', async () => {
  await memory({ documents: [{ source: 'a', text: 'a\ud83db' }], ...options() }).retrieve('taxi')
  expect(inputs()[0]).toEqual(['a\ufffdb'])
})

it('concurrent searches share one indexing', async () => {
  const known = memory({ documents: handbook, ...options() })
  await Promise.all([known.retrieve('taxi'), known.retrieve('holiday')])
  expect(inputs().filter(({ length }) => length === 3)).toHaveLength(1)
})

it('is retried like the client', async () => {
  statuses = [503, 200]
  const known = memory({ documents: handbook, embeddings: { client: client(1), model: 'small' } })
  expect((await known.retrieve('holiday'))[0]?.source).toBe('leave.md')
  expect(requests).toHaveLength(3)
})

it('a failing search rejects with the client error, and the next one continues from there', async () => {
  statuses = [200, 400]
  const known = memory({ documents: handbook, ...options({ batch: 2 }) })
  await expect(known.retrieve('holiday')).rejects.toMatchObject({ status: 400 })
  expect((await known.retrieve('holiday'))[0]?.source).toBe('leave.md')
  expect(inputs().map(({ length }) => length)).toEqual([2, 1, 1, 1])
})

it('a cancelled search stops a request that no other search needs', async () => {
  const arrived = new Promise<void>((resolve) => {
    received = resolve
  })
  answer = () => undefined
  const known = memory({ documents: handbook, ...options() })
  const controller = new AbortController()
  const pending = known.retrieve('holiday', { signal: controller.signal })
  await arrived
  controller.abort('enough')
  await expect(pending).rejects.toBe('enough')
})

it.each([
  ['no data', {}],
  ['too few vectors', { data: [{ index: 0, embedding: [1, 2] }] }],
  ['a string instead of a vector', { data: [0, 1, 2].map((index) => ({ index, embedding: 'AAAA' })) }],
  ['null instead of a number', { data: [0, 1, 2].map((index) => ({ index, embedding: [null] })) }],
  ['one index twice', { data: [0, 0, 1].map((index) => ({ index, embedding: [1] })) }],
  ['an index out of range', { data: [0, 1, 1e9].map((index) => ({ index, embedding: [1] })) }],
  [
    'vectors of different length',
    { data: [1, 2, 3].map((length, index) => ({ index, embedding: Array(length).fill(1) })) },
  ],
])('an answer with %s is refused', async (_, reply) => {
  answer = () => reply
  const search = memory({ documents: handbook, ...options() }).retrieve('x')
  await expect(search).rejects.toMatchObject({ name: 'MemoryError', code: 'invalid_embeddings' })
})

it('a vector of zeros, which is close to nothing, breaks no search', async () => {
  answer = ({ input }) => ({ data: input.map((_, index) => ({ index, embedding: [0, 0] })) })
  const found = await memory({ documents: handbook, ...options() }).retrieve('taxi')
  expect(found).toEqual([{ source: 'travel.md', text: handbook[2]?.text, score: 0.5 }])
})

it('restored, it embeds no text again, unless the model differs', async () => {
  const known = memory({ documents: handbook, ...options() })
  const before = await known.retrieve('holiday')
  const json: unknown = JSON.parse(JSON.stringify(known))
  requests = []
  const after = await restoreMemory(json, options()).retrieve('holiday')
  expect(inputs()).toEqual([['holiday']])
  expect(after.map(({ source }) => source)).toEqual(before.map(({ source }) => source))

  requests = []
  await restoreMemory(json, options({ model: 'large' })).retrieve('holiday')
  expect(inputs().map(({ length }) => length)).toEqual([3, 1])
})

it('drops the vectors of removed documents when it is stored', async () => {
  const known = memory({ documents: handbook, ...options() })
  await known.retrieve('holiday')
  known.remove('leave.md')
  expect(Object.keys(known.toJSON().embeddings?.vectors ?? {})).toHaveLength(2)
})
