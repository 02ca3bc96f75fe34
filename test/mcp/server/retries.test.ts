import {
  type AgentOptions,
  createAgent,
  defineAgents,
  defineShield,
  defineTool,
  memoryStore,
  piiShield,
  secretsShield,
  type SessionStore,
} from '../../../src/index.js'
import { z } from 'zod'
import { mcpServer, type McpHandler } from '../../../src/mcp/server/index.js'
import { distant } from '../../support/distant.js'
import { awaitTask, rpc, scriptedModel } from './support.js'
import { sampledRows } from '../../support/extent.js'

/** The shield's action for a call's text. Each message below contains a trigger for each action. */
const shields = {
  'no shield': {},
  'redacted personal data': { input: [piiShield()] },
  'redacted secrets': { input: [secretsShield()] },
  'other words': {
    input: [defineShield({ name: 'other', check: () => ({ action: 'redact', content: 'Something.' }) })],
  },
  'blocked input': {
    input: [defineShield({ name: 'none', check: () => ({ action: 'block', reason: 'No.' }) })],
  },
} satisfies Record<string, AgentOptions['shields']>

const message = 'Refund ann@example.com with sk-proj-abcdefghijklmnopqrstuvwxyz0123456789abcdefghijkl.'
const plain = { elicitation: { form: {} } }

/** An agent that pays after an approval. The provider gives each call the same id. */
function payer(shielded: keyof typeof shields, store: SessionStore = memoryStore()) {
  let payments = 0
  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    input: { type: 'object' },
    needsApproval: true,
    execute: () => `payment ${++payments}`,
  })
  const model = scriptedModel(() => [])
  model.request = async ({ messages }) => {
    const last = messages.at(-1)
    const isPaid = last?.role === 'tool'
    return {
      text: isPaid ? last.content : '',
      reasoning: '',
      refusal: null,
      toolCalls: isPaid
        ? []
        : [{ id: 'call_1', type: 'function', function: { name: 'pay', arguments: '{}' } }],
      finishReason: isPaid ? 'stop' : 'tool_calls',
      complete: true,
      usage: null,
      model: null,
    }
  }
  const agents = defineAgents({
    payer: createAgent({ model, store, tools: [pay], shields: shields[shielded] } as AgentOptions),
  })
  const serve = () => mcpServer({ agents, authorize: () => 'ann', onError: () => undefined })
  return { serve, count: () => payments, store }
}

interface Sending {
  session?: string
  key?: string
  message?: string
}

const send = (handler: McpHandler, { session, key, message: text = message }: Sending, more: object = {}) =>
  rpc(
    handler,
    'tools/call',
    { name: 'payer', arguments: { message: text, ...(session !== undefined && { session }) }, ...more },
    { capabilities: plain, ...(key !== undefined && { meta: { 'statewright/key': key } }) },
  )

/** Sends a call and its answers twice each, like a client whose connection breaks after each request. */
async function callTwice(handlers: readonly McpHandler[], sending: Sending): Promise<string> {
  const [one, two] = handlers as [McpHandler, McpHandler]
  for (let more: object = {}; ; ) {
    const replies = [await send(one, sending, more), await send(two, sending, more), await send(one, sending)]
    const [first, second] = replies.map(({ result }) => result)
    expect(second?.['content']).toEqual(first?.['content'])
    if (first?.['resultType'] !== 'input_required') return JSON.stringify(first?.['content'])
    const inputRequests = first['inputRequests'] as object
    const approve = { action: 'accept', content: { confirm: true } }
    more = {
      requestState: first['requestState'],
      inputResponses: Object.fromEntries(Object.keys(inputRequests).map((key) => [key, approve])),
    }
  }
}

const ways: Record<string, Sending> = {
  'a session': { session: 's' },
  'a key': { key: 'k' },
  'a session and a key': { session: 's', key: 'k' },
}

const cells = sampledRows(
  Object.keys(shields).flatMap((shield) => Object.keys(ways).map((way) => [shield, way] as const)),
)

test.each(cells)('with %s, a call with %s that is sent again has one effect', async (shield, way) => {
  const place = payer(shield as keyof typeof shields)
  const handlers = [place.serve(), place.serve()]
  const answer = await callTwice(handlers, ways[way] ?? {})
  const isBlocked = shield === 'blocked input'
  expect(place.count()).toBe(isBlocked ? 0 : 1)
  if (!isBlocked) expect(answer).toContain('payment 1')
  // The next call has a separate approval and effect, although the provider repeats its ids.
  const next = { session: 'next', ...ways[way], ...(way !== 'a session' && { key: 'k2' }), message: 'Again.' }
  await callTwice(handlers, next)
  expect(place.count()).toBe(isBlocked ? 0 : 2)
})

test('with a slow store, concurrent copies of a call are one call', async () => {
  const place = payer('redacted personal data', distant(memoryStore()))
  const handlers = [place.serve(), place.serve(), place.serve()]
  const replies = await Promise.all(handlers.map((handler) => send(handler, { session: 's' })))
  const states = new Set(replies.map(({ result }) => result?.['requestState']))
  expect(states.size).toBe(1)
})

describe('a key', () => {
  test('leads to the turn that it started, regardless of later turns', async () => {
    const { serve } = payer('redacted secrets')
    const handler = serve()
    const [first, second] = [
      { session: 's', key: 'k1' },
      { session: 's', key: 'k2', message: 'Another.' },
    ]
    await callTwice([handler, handler], first)
    await callTwice([handler, handler], second)
    expect(await callTwice([handler, handler], first)).toContain('payment 1')
    expect(await callTwice([handler, handler], second)).toContain('payment 2')
  })

  test.each([{}, { session: 's' }])('with different text is refused, in the session %j', async (named) => {
    const { serve, count } = payer('no shield')
    const handler = serve()
    await callTwice([handler, handler], { ...named, key: 'k' })
    const { result } = await send(handler, { ...named, key: 'k', message: 'Something else.' })
    expect(result).toMatchObject({ isError: true })
    expect(JSON.stringify(result)).toContain('Send a new key with each new message')
    expect(count()).toBe(1)
  })

  test('is not needed to repeat a call with the session of its result', async () => {
    const { serve, count } = payer('redacted personal data')
    const handler = serve()
    await callTwice([handler, handler], { key: 'k' })
    const { result } = await send(handler, { key: 'k' })
    const meta = (result?.['_meta'] ?? {}) as Record<string, string>
    const session = meta['statewright/session'] ?? ''
    expect((await send(handler, { session })).result?.['content']).toEqual(result?.['content'])
    expect(count()).toBe(1)
  })
})

test('only one of several concurrent messages to a session starts the turn, and the others are refused', async () => {
  const { serve } = payer('no shield', distant(memoryStore()))
  const texts = ['One.', 'Two.', 'Three.']
  const replies = await Promise.all(texts.map((text) => send(serve(), { session: 's', message: text })))
  const refused = replies.filter(({ result }) => JSON.stringify(result).includes("The session 's'"))
  expect(refused).toHaveLength(2)
})

test('reordered arguments, or a progress token, make the same call', async () => {
  const requests: string[] = []
  const model = scriptedModel(({ messages }) => {
    requests.push(messages.at(-1)?.content as string)
    return 'Sunny.'
  })
  const handler = mcpServer({
    agents: defineAgents({ weather: createAgent({ model, store: memoryStore() }) }),
    authorize: 'none',
    tools: {
      weather: {
        input: z.object({ city: z.string(), day: z.string() }),
        toMessage: ({ city }: { city: string }) => `${requests.length}: How is the weather in ${city}?`,
      },
    },
  })
  const ask = (args: object) => rpc(handler, 'tools/call', { name: 'weather', arguments: args })
  await ask({ city: 'Bern', day: 'today', session: 's' })
  await awaitTask(handler, 's', ['completed'])
  await ask({ session: 's', day: 'today', city: 'Bern' })
  await ask({ session: 's', day: 'today', city: 'Basel' })
  await awaitTask(handler, 's~2', ['completed'])
  expect(requests).toEqual(['0: How is the weather in Bern?', '1: How is the weather in Basel?'])
})

test('the result of a later turn names the session that continues the conversation', async () => {
  const { serve } = payer('blocked input')
  const handler = serve()
  for (const text of ['One.', 'Two.', 'Three.']) {
    const { result } = await send(handler, { session: 's', message: text })
    expect(result?.['_meta']).toMatchObject({ 'statewright/session': 's' })
  }
})

describe('the state of a call', () => {
  const start = async () => {
    const place = payer('redacted personal data')
    const handler = place.serve()
    const { result } = await send(handler, { session: 's', key: 'k' })
    const [question = ''] = Object.keys(result?.['inputRequests'] as object)
    const inputResponses = { [question]: { action: 'accept', content: { confirm: true } } }
    return { ...place, handler, state: result?.['requestState'] as string, inputResponses }
  }

  test.each([
    ['another message', { session: 's', key: 'k', message: 'Something else.' }],
    ['another session', { session: 't', key: 'k' }],
    ['another key', { session: 's', key: 'k2' }],
  ])('is refused with %s', async (_, sending) => {
    const { handler, state, inputResponses, count } = await start()
    const { result } = await send(handler, sending, { requestState: state, inputResponses })
    expect(JSON.stringify(result)).toContain('belongs to another call')
    expect(count()).toBe(0)
  })

  test('is invalid without its seal, also with the same call', async () => {
    const { handler, state, inputResponses, count } = await start()
    const { task } = JSON.parse(state) as { task: string }
    for (const forged of [{ task }, { task, seal: '' }, { task, seal: '0'.repeat(32) }]) {
      const more = { requestState: JSON.stringify(forged), inputResponses }
      const { error } = await send(handler, { session: 's', key: 'k' }, more)
      expect(error?.message).toBe("There is no task 's'.")
    }
    expect(count()).toBe(0)
  })
})
