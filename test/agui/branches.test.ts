import { HttpAgent } from '@ag-ui/client'
import { aguiHandler, type AGUIHandlerOptions } from '../../src/agui/index.js'
import { createAgent, memoryStore, type SessionStore } from '../../src/index.js'
import { distant } from '../support/distant.js'
import { call as callOf, ManualModel } from '../support/manual-model.js'
import { stage, until } from '../support/play.js'
import { call, text, tool } from '../support/tools.js'
import { sampledKinds } from '../support/extent.js'

const base = 'http://chat.test/api/agui'

type Handler = (request: Request) => Promise<Response>

const client = (handler: Handler): HttpAgent =>
  new HttpAgent({ url: base, threadId: 'ann', fetch: (url, init) => handler(new Request(url, init)) })

async function say(agent: HttpAgent, words: string, id: string): Promise<void> {
  agent.addMessage({ id, role: 'user', content: words })
  await agent.runAgent()
}

const wordsOf = (agent: Pick<HttpAgent, 'messages'>): unknown[] =>
  agent.messages.flatMap(({ role, content }) => (role === 'reasoning' ? [] : [content]))

interface Shown {
  messages: { id: string; content: unknown }[]
  branches?: { messageId: string; position: number; count: number; branches: number[] }[]
  interrupts: { id: string }[]
}

async function shown(handler: Handler, branch?: number): Promise<Shown> {
  const response = await handler(new Request(`${base}/ann${branch === undefined ? '' : `?branch=${branch}`}`))
  return (await response.json()) as Shown
}

const post = (body: object): Request =>
  new Request(base, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ threadId: 'ann', ...body }),
  })

async function refusal(response: Response): Promise<[number, string]> {
  const { error } = (await response.json()) as { error: { code: string } }
  return [response.status, error.code]
}

const kinds: [string, () => SessionStore][] = [
  ['synchronously', memoryStore],
  ['asynchronously', () => distant(memoryStore())],
]

async function served(turns: readonly string[], store: SessionStore, more: Partial<AGUIHandlerOptions> = {}) {
  const theatre = await stage(
    turns.map((one) => text(one)),
    { store },
  )
  return { theatre, handler: aguiHandler({ agent: theatre.agent, authorize: 'none', ...more }) }
}

describe.each(sampledKinds(kinds))('a thread over a store that answers %s', (_kind, open) => {
  test('regenerateFrom creates another answer, from a user message or an answer', async () => {
    const { handler, theatre } = await served(['One.', 'Two.', 'Three.'], open())
    const page = client(handler)
    await say(page, 'Hi.', 'u1')
    await page.runAgent({ forwardedProps: { regenerateFrom: 'u1' } })
    expect(wordsOf(page)).toEqual(['Hi.', 'Two.'])
    const answer = page.messages.at(-1)?.id
    await page.runAgent({ forwardedProps: { regenerateFrom: answer } })
    expect(wordsOf(page)).toEqual(['Hi.', 'Three.'])
    const now = await shown(handler)
    expect(now.messages.map(({ id }) => id)).toEqual(page.messages.map(({ id }) => id))
    expect(now.branches).toEqual([
      { messageId: page.messages.at(-1)?.id, position: 3, count: 3, branches: [1, 2, 3] },
    ])
    const former = await shown(handler, 1)
    expect(former.messages.map(({ content }) => content)).toEqual(['Hi.', 'One.'])
    expect(theatre.requests).toHaveLength(3)
  })

  test('different text edits the message, and an earlier branch continues if the page selects it', async () => {
    const { handler } = await served(['One.', 'Two.', 'Three.', 'Four.', 'Five.'], open())
    const page = client(handler)
    await say(page, 'First.', 'u1')
    await say(page, 'Second.', 'u2')
    page.setMessages([{ id: 'u1', role: 'user', content: 'Other first.' }])
    await page.runAgent({ forwardedProps: { regenerateFrom: 'u1' } })
    expect(wordsOf(page)).toEqual(['Other first.', 'Three.'])
    expect((await shown(handler)).branches).toEqual([
      { messageId: 'u1', position: 2, count: 2, branches: [1, 2] },
    ])
    page.setMessages((await shown(handler, 1)).messages as never)
    page.addMessage({ id: 'u3', role: 'user', content: 'Third.' })
    await page.runAgent({ forwardedProps: { branch: 1 } })
    expect(wordsOf(page)).toEqual(['First.', 'One.', 'Second.', 'Two.', 'Third.', 'Four.'])
    // On the branch that the page selects, the same text is the same message.
    page.setMessages([{ id: 'u1', role: 'user', content: 'Other first.' }])
    await page.runAgent({ forwardedProps: { regenerateFrom: 'u1', branch: 2 } })
    expect((await shown(handler)).branches?.at(-1)).toMatchObject({ position: 2, count: 2, branches: [2, 3] })
  })

  test('a repeated request creates no second branch', async () => {
    const { handler, theatre } = await served(['One.', 'Two.'], open())
    await say(client(handler), 'Hi.', 'u1')
    const body = { runId: 'r2', messages: [], forwardedProps: { regenerateFrom: 'u1' } }
    const both = await Promise.all([handler(post(body)), handler(post(body))])
    for (const response of [...both, await handler(post(body))])
      expect(await response.text()).toContain('Two.')
    expect(await theatre.agent.listBranches('ann')).toHaveLength(2)
    expect(theatre.requests).toHaveLength(2)
  })
})

test('unknown messages are refused, and other forwardedProps are ignored', async () => {
  const { handler, theatre } = await served(['One.', 'Two.'], memoryStore())
  const ask = async (forwardedProps: unknown) =>
    refusal(await handler(post({ runId: 'r', messages: [], forwardedProps })))
  expect(await ask({ regenerateFrom: 'u1' })).toEqual([404, 'unknown_session'])
  await say(client(handler), 'Hi.', 'u1')
  expect(await ask({ regenerateFrom: 'u9' })).toEqual([404, 'unknown_message'])
  expect(await ask({ regenerateFrom: 7 })).toEqual([400, 'invalid_input'])
  expect(await ask({ regenerateFrom: 'u1', branch: 'x' })).toEqual([400, 'invalid_input'])
  expect(await ask({ regenerateFrom: 'u1', branch: 2 })).toEqual([404, 'unknown_branch'])
  expect(await ask({ edit: 'u1' })).toEqual([400, 'invalid_input'])
  expect(await ask(null)).toEqual([400, 'invalid_input'])
  expect(await refusal(await handler(new Request(`${base}/ann?branch=2`)))).toEqual([404, 'unknown_branch'])
  expect(theatre.requests).toHaveLength(1)
})

test('a branch is refused during an approval, and an approval is only valid on its branch', async () => {
  const model = new ManualModel()
  const pay = tool('pay', () => 'paid', { needsApproval: true })
  const agent = createAgent({ model, store: memoryStore(), prices: null, tools: [pay] })
  const handler = aguiHandler({ agent, authorize: 'none' })
  const page = client(handler)
  const answer = async (
    work: Promise<unknown>,
    response: Parameters<NonNullable<typeof model.pending>['answer']>[0],
  ) => {
    await until(() => model.pending !== null)
    model.pending?.answer(response)
    await work
  }
  // A provider that restarts its call numbers in each answer.
  const asking = { toolCalls: [callOf('call_1', 'pay', { to: 'Ann' })] }
  await answer(say(page, 'Pay.', 'u1'), asking)
  const again = { runId: 'r2', messages: [], forwardedProps: { regenerateFrom: 'u1' } }
  expect(await refusal(await handler(post(again)))).toEqual([409, 'waiting_for_answers'])
  const { interrupts } = await shown(handler)
  const former = page.messages
  await handler(
    new Request(`${base}/ann/stop`, { method: 'POST', headers: { 'content-type': 'application/json' } }),
  )
  const other = client(handler)
  await answer(other.runAgent({ forwardedProps: { regenerateFrom: 'u1' } }), asking)
  const now = await shown(handler)
  expect(now.interrupts.map(({ id }) => id)).not.toEqual(interrupts.map(({ id }) => id))
  const approve = (part: typeof interrupts) =>
    part.map(({ id }) => ({ interruptId: id, status: 'resolved', payload: { approved: true } }))
  // A page on the earlier branch answers its interrupt on the current branch.
  for (const messages of [former, other.messages]) {
    const stale = { runId: 'r3', messages, resume: approve(interrupts) }
    expect(await refusal(await handler(post(stale)))).toEqual([409, 'stale_answer'])
  }
  expect(pay.inputs).toEqual([])
  const fresh = handler(post({ runId: 'r4', messages: other.messages, resume: approve(now.interrupts) }))
  await answer(fresh, { text: 'Done.' })
  expect(await (await fresh).text()).toContain('Done.')
  expect(pay.inputs).toEqual([{ to: 'Ann' }])
})

test('executed calls stay on their branch', async () => {
  const look = tool('look', () => 'seen')
  const theatre = await stage([call('look'), text('One.'), text('Two.')], {
    store: memoryStore(),
    tools: [look],
  })
  const handler = aguiHandler({ agent: theatre.agent, authorize: 'none' })
  const page = client(handler)
  await say(page, 'Look.', 'u1')
  await page.runAgent({ forwardedProps: { regenerateFrom: 'u1' } })
  expect(page.messages.map(({ role }) => role)).toEqual(['user', 'assistant'])
  expect((await shown(handler, 1)).messages).toHaveLength(4)
  expect(look.inputs).toHaveLength(1)
})
