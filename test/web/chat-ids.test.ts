import { memoryStore } from '../../src/index.js'
import { type Authorize, chatHandler } from '../../src/ui/index.js'
import { stage } from '../support/play.js'
import { text } from '../support/tools.js'

async function requestChat(id: string, authorize: Authorize) {
  const { agent } = await stage([text('Hello.')], { store: memoryStore() })
  const handler = chatHandler({ agent, authorize })
  const body = { id, messages: [{ id: 'u1', role: 'user', parts: [{ type: 'text', text: 'Hi.' }] }] }
  const headers = { 'content-type': 'application/json' }
  const request = new Request('http://chat.test/api/chat', {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  })
  const response = await handler(request)
  await response.text()
  const history = await handler(new Request(`http://chat.test/api/chat/${encodeURIComponent(id)}`))
  return { status: response.status, history: history.status }
}

it.each(['-V1StGXR8_Z5jdHi6B-myT', '-', '--a'])(
  'a page that generates its ids at random may generate %s, behind a prefix',
  async (id) => {
    expect(await requestChat(id, () => 'ann')).toEqual({ status: 200, history: 200 })
    expect(await requestChat(id, 'none')).toEqual({ status: 400, history: 400 })
  },
)

it.each(['.a', '..', 'a/b', 'a:b', ''])('%j is not a valid chat id', async (id) => {
  expect((await requestChat(id, () => 'ann')).status).toBe(400)
})

it('a chat id consists of 1 to 128 of the characters A-Z a-z 0-9 . _ @ -, and 200 with its prefix and the colon', async () => {
  const statusOf = async (id: string, prefix: string): Promise<number> =>
    (await requestChat(id, () => prefix)).status
  expect(await statusOf('Az09._@-', 'ann')).toBe(200)
  expect(await statusOf('a'.repeat(128), 'ann')).toBe(200)
  expect(await statusOf('a'.repeat(129), 'ann')).toBe(400)
  expect(await statusOf('a'.repeat(100), 'p'.repeat(99))).toBe(200)
  expect(await statusOf('a'.repeat(100), 'p'.repeat(100))).toBe(400)
})
