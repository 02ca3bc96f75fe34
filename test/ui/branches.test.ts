import type { UIMessage } from 'ai'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAgent, memoryStore, patternShield, type SessionStore } from '../../src/index.js'
import type { Turn } from '../../src/rehearsal/index.js'
import { fileStore } from '../../src/stores/file/index.js'
import { chatHandler, type ChatHandlerOptions } from '../../src/ui/index.js'
import { distant } from '../support/distant.js'
import { ManualModel, settled } from '../support/manual-model.js'
import { type Stage, stage, type StageOptions, until } from '../support/play.js'
import { call, text, tool } from '../support/tools.js'
import { Chat, chunksOf, type Handler, protocol, textOf } from './client.js'
import { sampledKinds } from '../support/extent.js'

const folders: string[] = []
const stores: SessionStore[] = []

afterEach(async () => {
  await Promise.all(stores.splice(0).map(async (store) => store.close()))
  await Promise.all(folders.splice(0).map((folder) => rm(folder, { recursive: true })))
})

const kinds: [string, () => Promise<SessionStore>][] = [
  ['synchronously', async () => memoryStore()],
  ['asynchronously', async () => distant(memoryStore())],
  [
    'from files',
    async () => {
      const dir = await mkdtemp(join(tmpdir(), 'statewright-chat-'))
      folders.push(dir)
      const store = fileStore({ dir })
      stores.push(store)
      return store
    },
  ],
]

async function opened(
  turns: readonly Turn[],
  options: StageOptions = {},
  more: Partial<ChatHandlerOptions> = {},
): Promise<{ theatre: Stage; handler: Handler; store: SessionStore }> {
  const store = (options.store ?? memoryStore()) as SessionStore
  const theatre = await stage(turns, { ...options, store })
  const handler = chatHandler({ agent: theatre.agent, authorize: 'none', protocol, ...more })
  return { theatre, handler, store }
}

const at = (path: string): Request => new Request(`http://chat.test/api/chat${path}`)

const post = (body: object, headers: Record<string, string> = {}): Request =>
  new Request('http://chat.test/api/chat', {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })

async function shown(handler: Handler, branch?: number): Promise<UIMessage[]> {
  const response = await handler(at(`/c1${branch === undefined ? '' : `?branch=${branch}`}`))
  return (await response.json()) as UIMessage[]
}

const words = (messages: readonly UIMessage[]): string[] => messages.map(textOf)

const branchesOf = (message: UIMessage | undefined): unknown =>
  message?.parts.flatMap((part) => (part.type === 'data-branches' ? [part.data] : []))[0]

async function refusal(response: Response): Promise<[number, string]> {
  const { error } = (await response.json()) as { error: { code: string } }
  return [response.status, error.code]
}

const user = (id: string, userId: string) => ({ id, role: 'user', parts: [{ type: 'text', text: userId }] })
const again = (id: string, more: object = {}) => ({
  id: 'c1',
  trigger: 'regenerate-message',
  messages: [user(id, 'Hi.')],
  ...more,
})

describe.each(sampledKinds(kinds))('a chat over a store that answers %s', (_kind, open) => {
  test('regenerate() creates another answer, and the previous one is shown on its branch', async () => {
    const store = await open()
    const { handler, theatre } = await opened(
      ['One.', 'Two.', 'Three.', 'Four.'].map((one) => text(one)),
      {
        store,
      },
    )
    const chat = new Chat('c1', handler)
    await chat.sendMessage({ text: 'Hi.' })
    await chat.regenerate()
    expect([chat.status, chat.errors, words(chat.messages)]).toEqual(['ready', [], ['Hi.', 'Two.']])
    expect(branchesOf(chat.lastMessage)).toEqual({ position: 2, count: 2, branches: [1, 2] })
    await chat.regenerate({ messageId: chat.lastMessage?.id ?? '' })
    expect(words(chat.messages)).toEqual(['Hi.', 'Three.'])
    expect(branchesOf(chat.lastMessage)).toEqual({ position: 3, count: 3, branches: [1, 2, 3] })
    const reloaded = await shown(handler)
    expect(reloaded.map(({ id }) => id)).toEqual(chat.messages.map(({ id }) => id))
    expect(branchesOf(reloaded[1])).toEqual({ position: 3, count: 3, branches: [1, 2, 3] })
    expect(words(await shown(handler, 1))).toEqual(['Hi.', 'One.'])
    expect(branchesOf((await shown(handler, 2))[1])).toMatchObject({ position: 2 })
    await chat.sendMessage({ text: 'And?' })
    expect(words(await shown(handler))).toEqual(['Hi.', 'Three.', 'And?', 'Four.'])
    expect(chat.errors).toEqual([])
    expect(theatre.requests).toHaveLength(4)
    expect((await store.get('c1'))?.summary?.runs).toBe(4)
  })

  test('an edit continues from its message, and an earlier branch continues if a page selects it', async () => {
    const store = await open()
    const { handler } = await opened(
      ['One.', 'Two.', 'Three.', 'Four.'].map((one) => text(one)),
      { store },
    )
    const chat = new Chat('c1', handler)
    await chat.sendMessage({ text: 'First.' })
    const first = chat.messages[0]?.id ?? ''
    await chat.sendMessage({ text: 'Second.' })
    await chat.sendMessage({ text: 'Other first.', messageId: first })
    expect([chat.errors, words(chat.messages)]).toEqual([[], ['Other first.', 'Three.']])
    const reloaded = await shown(handler)
    expect(reloaded.map(({ id }) => id)).toEqual(chat.messages.map(({ id }) => id))
    expect(branchesOf(reloaded[0])).toEqual({ position: 2, count: 2, branches: [1, 2] })
    expect(branchesOf(reloaded[1])).toBeUndefined()
    // The page selects the earlier branch and continues there.
    const former = new Chat('c1', handler, { messages: await shown(handler, 1) })
    expect(words(former.messages)).toEqual(['First.', 'One.', 'Second.', 'Two.'])
    await former.sendMessage({ text: 'Third.' }, { body: { branch: 1 } })
    expect(former.errors).toEqual([])
    expect(words(await shown(handler))).toEqual(['First.', 'One.', 'Second.', 'Two.', 'Third.', 'Four.'])
    expect(words(await shown(handler, 2))).toEqual(['Other first.', 'Three.'])
  })

  test('a repeated request creates no second branch', async () => {
    const store = await open()
    const { handler, theatre } = await opened(
      ['One.', 'Two.', 'Three.'].map((one) => text(one)),
      { store },
    )
    const chat = new Chat('c1', handler)
    await chat.sendMessage({ text: 'Hi.' })
    const [userId, answer] = chat.messages.map(({ id }) => id)
    const regenerate = again(userId ?? '', { messageId: answer })
    const both = await Promise.all([handler(post(regenerate)), handler(post(regenerate))])
    const first = await Promise.all(both.map(chunksOf))
    expect(JSON.stringify(first[0])).toContain('Two.')
    expect(JSON.stringify(first[1])).toContain('Two.')
    expect(JSON.stringify(await chunksOf(await handler(post(regenerate))))).toContain('Two.')
    const edit = {
      id: 'c1',
      trigger: 'submit-message',
      messageId: userId,
      messages: [user(userId ?? '', 'Hello.')],
    }
    for (let i = 0; i < 3; i++)
      expect(JSON.stringify(await chunksOf(await handler(post(edit))))).toContain('Three.')
    expect(theatre.requests).toHaveLength(3)
    expect(await theatre.agent.listBranches('c1')).toHaveLength(3)
    // Also only once from a page on an earlier branch.
    const old = again(userId ?? '', { branch: 1 })
    expect((await handler(post({ ...old, branch: 9 }))).status).toBe(404)
  })
})

test('another process continues a request after the first process was killed', async () => {
  const near = memoryStore()
  const model = new ManualModel()
  const handlerOf = (store: SessionStore, mine: ManualModel) =>
    chatHandler({ agent: createAgent({ model: mine, store, prices: null }), authorize: 'none', protocol })
  const handler = handlerOf(near, model)
  const answered = handler(post({ id: 'c1', messages: [user('u1', 'Hi.')] }))
  await until(() => model.pending !== null)
  model.pending?.answer({ text: 'One.' })
  await chunksOf(await answered)
  const before = near.read('c1').length
  const begun = handler(post(again('u1')))
  await until(() => model.pending !== null)
  const records = near.read('c1')
  for (let end = before; end <= records.length; end++) {
    // The log of a killed process, with an expired lease.
    const store = memoryStore()
    const lease = store.acquire('c1', { holder: 'a process that was killed', ttlMs: 1000 })
    store.append(lease, records.slice(0, end))
    store.release(lease)
    const other = new ManualModel()
    const elsewhere = handlerOf(store, other)
    const response = elsewhere(post(again('u1')))
    await until(() => other.pending !== null)
    other.pending?.answer({ text: 'Two.' })
    expect(JSON.stringify(await chunksOf(await response))).toContain('Two.')
    expect(words(await shown(elsewhere))).toEqual(['Hi.', 'Two.'])
    expect(words(await shown(elsewhere, 1))).toEqual(['Hi.', 'One.'])
    expect(other.attempts).toHaveLength(1)
  }
  model.pending?.answer({ text: 'Too late.' })
  await chunksOf(await begun)
})

test('a page that connects during an answer follows the current branch', async () => {
  const model = new ManualModel()
  const agent = createAgent({ model, store: memoryStore(), prices: null })
  const handler = chatHandler({ agent, authorize: 'none', protocol })
  const chat = new Chat('c1', handler)
  const sent = chat.sendMessage({ text: 'Hi.' })
  await until(() => model.pending !== null)
  model.pending?.answer({ text: 'One.' })
  await sent
  const regenerating = chat.regenerate()
  await until(() => model.pending !== null)
  expect(words(await shown(handler))).toEqual(['Hi.'])
  const late = new Chat('c1', handler, { messages: await shown(handler) })
  const following = late.resumeStream()
  // The same request joins the answer in progress; other requests are refused.
  const other = {
    id: 'c1',
    messageId: chat.messages[0]?.id,
    messages: [user(chat.messages[0]?.id ?? '', 'No.')],
  }
  expect(await refusal(await handler(post(other)))).toEqual([409, 'run_in_progress'])
  const joined = handler(post(again(chat.messages[0]?.id ?? '')))
  await settled()
  model.pending?.answer({ text: 'Two.' })
  await Promise.all([regenerating, following])
  expect(JSON.stringify(await chunksOf(await joined))).toContain('Two.')
  expect([words(chat.messages), words(late.messages)]).toEqual([
    ['Hi.', 'Two.'],
    ['Hi.', 'Two.'],
  ])
  expect(branchesOf(late.lastMessage)).toMatchObject({ position: 2, count: 2 })
  expect(model.attempts).toHaveLength(2)
})

describe('a chat refuses', () => {
  test('unknown messages and branches, and those of other users', async () => {
    const authorize = (request: Request) => request.headers.get('x-user')
    const { handler, theatre } = await opened([text('One.'), text('Two.')], {}, { authorize })
    const as = (name: string) => ({ 'x-user': name })
    await chunksOf(await handler(post({ id: 'c1', messages: [user('u1', 'Hi.')] }, as('ann'))))
    const edit = { id: 'c1', messageId: 'u1', messages: [user('u1', 'Ho.')] }
    expect(await refusal(await handler(post(edit, as('bo'))))).toEqual([404, 'unknown_session'])
    expect(await refusal(await handler(post(again('u1'), as('bo'))))).toEqual([404, 'unknown_session'])
    expect(await refusal(await handler(post(again('u9'), as('ann'))))).toEqual([404, 'unknown_message'])
    const unknown = { ...edit, messageId: 'u9', messages: [user('u9', 'Ho.')] }
    expect(await refusal(await handler(post(unknown, as('ann'))))).toEqual([404, 'unknown_message'])
    for (const branch of [7, 0, '1', null])
      expect(await refusal(await handler(post({ ...again('u1'), branch }, as('ann'))))).toEqual(
        branch === 7 ? [404, 'unknown_branch'] : [400, 'invalid_input'],
      )
    for (const wrong of [{ messageId: 7 }, { messages: [] }, { trigger: 'erase' }])
      expect(await refusal(await handler(post({ ...again('u1'), ...wrong }, as('ann'))))).toEqual([
        400,
        'invalid_input',
      ])
    const read = (branch: string, name = 'ann') =>
      handler(new Request(`http://chat.test/api/chat/c1?branch=${branch}`, { headers: as(name) }))
    expect(await refusal(await read('2'))).toEqual([404, 'unknown_branch'])
    expect(await refusal(await read('x'))).toEqual([400, 'invalid_input'])
    expect(await (await read('1', 'bo')).json()).toEqual([])
    expect(theatre.requests).toHaveLength(1)
    // Deleting the chat deletes its branches.
    await chunksOf(await handler(post(again('u1'), as('ann'))))
    await theatre.agent.deleteSessions({ prefix: 'ann' })
    expect(await (await read('1')).json()).toEqual([])
  })

  test('requests during an approval; after the decision, executed calls stay', async () => {
    const pay = tool('pay', ({ to }) => ({ paid: to }), { needsApproval: true })
    const turns = [call('pay', { to: 'Ann' }), text('Paid.'), call('pay', { to: 'Ann' }), text('Not now.')]
    const { handler } = await opened(turns, { tools: [pay] })
    const chat = new Chat('c1', handler)
    await chat.sendMessage({ text: 'Pay.' })
    const userId = chat.messages[0]?.id ?? ''
    expect(await refusal(await handler(post(again(userId))))).toEqual([409, 'waiting_for_answers'])
    const part = chat.lastMessage?.parts.find(({ type }) => type === 'tool-pay') as never as Asked
    await chat.addToolApprovalResponse({ id: part.approval.id, approved: true })
    await until(() => chat.status === 'ready' && chat.text === 'Paid.')
    const answered = chat.messages
    await chat.regenerate()
    expect(chat.lastMessage?.parts.find(({ type }) => type === 'tool-pay')).toMatchObject({
      state: 'approval-requested',
    })
    expect(pay.inputs).toHaveLength(1)
    // The call of the earlier branch has a different approval id, so its answer does not apply here.
    const former = (answered[1]?.parts.find(({ type }) => type === 'tool-pay') ?? {}) as {
      toolCallId?: string
    }
    const now = chat.lastMessage?.parts.find(({ type }) => type === 'tool-pay') as { toolCallId?: string }
    expect(former.toolCallId).not.toBe(now.toolCallId)
    const stale = {
      id: 'c1',
      messages: [
        {
          id: answered[1]?.id,
          role: 'assistant',
          parts: [
            {
              ...former,
              type: 'tool-pay',
              state: 'approval-responded',
              approval: { id: part.approval.id, approved: true },
            },
          ],
        },
      ],
    }
    expect((await refusal(await handler(post(stale))))[0]).toBe(409)
    expect(pay.inputs).toHaveLength(1)
    expect(words(await shown(handler, 1))).toEqual(['Pay.', 'Paid.'])
  })

  test('a message that a shield refused, until its text is different', async () => {
    const shield = patternShield({ name: 'no-secrets', patterns: [/secret/], action: 'block' })
    const { handler } = await opened([text('Fine.')], { shields: { input: [shield] } })
    const chat = new Chat('c1', handler)
    await chat.sendMessage({ text: 'A secret.' })
    const userId = chat.messages[0]?.id ?? ''
    expect(await refusal(await handler(post(again(userId))))).toEqual([409, 'refused_by_shield'])
    await chat.sendMessage({ text: 'Hello.', messageId: userId })
    expect(chat.text).toBe('Fine.')
    expect(JSON.stringify(await shown(handler, 1))).not.toContain('secret')
  })
})

test('regenerate() retries a failed answer, and keeps queued messages in the chat', async () => {
  const model = new ManualModel()
  const agent = createAgent({ model, store: memoryStore(), prices: null, retry: { maxAttempts: 1 } })
  const handler = chatHandler({ agent, authorize: 'none', protocol, onError: () => undefined })
  const chat = new Chat('c1', handler)
  const sent = chat.sendMessage({ text: 'Hi.' })
  await until(() => model.pending !== null)
  model.pending?.fail({ kind: 'fatal' })
  await sent
  expect(chat.status).toBe('error')
  const regenerating = chat.regenerate()
  await until(() => model.pending !== null)
  const queued = handler(post({ id: 'c1', messages: [user('u2', 'And?')] }))
  await settled()
  model.pending?.answer({ text: 'One.' })
  await regenerating
  await until(() => model.pending !== null)
  model.pending?.answer({ text: 'Two.' })
  await chunksOf(await queued)
  expect(words(await shown(handler))).toEqual(['Hi.', 'One.', 'And?', 'Two.'])
  // The answer only contains the error.
  expect(words(await shown(handler, 1))).toEqual(['Hi.', ''])
  // Repeated from the other branch, the message is not processed again.
  await chunksOf(
    await handler(post(again((await shown(handler))[0]?.id ?? '', { branch: 1 }))).then(async (response) => {
      await until(() => model.pending !== null)
      model.pending?.answer({ text: 'Three.' })
      return response
    }),
  )
  expect(await refusal(await handler(post({ id: 'c1', messages: [user('u2', 'And?')] })))).toEqual([
    409,
    'already_said',
  ])
  expect(words(await shown(handler))).toEqual(['Hi.', 'Three.'])
})

interface Asked {
  approval: { id: string }
}
