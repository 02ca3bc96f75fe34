import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'

const folder = await mkdtemp(join(tmpdir(), 'chat-'))
process.env['CHAT_DIR'] = folder
delete process.env['OPENAI_API_KEY']
const { app } = await import('./app.js')
const { store } = await import('./agent.mjs')
after(async () => {
  store.close()
  await rm(folder, { recursive: true, force: true })
})

const ann = 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa'
const ben = 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb'

/** Sends a text to a chat, as `useChat` does, and returns the streamed response. */
async function say(visitor: string, id: string, text: string): Promise<string> {
  const response = await app.request('/api/chat', {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-ai-sdk': '7', cookie: `visitor=${visitor}` },
    body: JSON.stringify({ id, messages: [{ id: 'm1', role: 'user', parts: [{ type: 'text', text }] }] }),
  })
  assert.equal(response.status, 200)
  return response.text()
}

async function list(visitor: string): Promise<{ id: string; title: string }[]> {
  const response = await app.request('/api/chats', { headers: { cookie: `visitor=${visitor}` } })
  return response.json() as Promise<{ id: string; title: string }[]>
}

test('streams the answer to a message, and lists the chat only for its user', async () => {
  const streamed = await say(ann, 'c1', 'To Lisbon, please')
  assert.match(streamed, /find_trains/)
  assert.deepEqual(await list(ann), [{ id: 'c1', title: 'To Lisbon, please' }])
  assert.deepEqual(await list(ben), [])
})

test('refuses a request without a user', async () => {
  const response = await app.request('/api/chat/c1')
  assert.equal(response.status, 401)
})
