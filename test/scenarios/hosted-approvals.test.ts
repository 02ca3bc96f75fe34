import {
  type AgentEvent,
  type AgentOptions,
  createAgent,
  defineTool,
  withFallbacks,
  type HistoryMessage,
  memoryStore,
  openaiChat,
  openaiResponses,
  patternShield,
  UsageError,
} from '../../src/index.js'
import { createActor, waitFor } from 'xstate'
import * as z from 'zod'
import type { JsonObject } from '../../machines/agent/json.js'
import { type Rehearsal, startRehearsal, type Turn } from '../../src/rehearsal/index.js'
import { replaySession, createRecordedAgent, recordSession } from '../../src/testing/index.js'
import { tool } from '../support/tools.js'
import { sampledRows } from '../support/extent.js'

const rehearsals: Rehearsal[] = []

afterEach(async () => {
  await Promise.all(rehearsals.splice(0).map((one) => one.close()))
})

const shorten = (url = 'https://herons.test', more: object = {}) => ({
  server: 'zip',
  name: 'shorten',
  arguments: { url },
  ...more,
})
const done: Turn = { text: 'Done.' }

/** A server that asks for approval of MCP tools and rejects the same requests as OpenAI. */
async function theatre(turns: Turn[], options: Partial<AgentOptions> = {}) {
  const rehearsal = await startRehearsal({ scenario: { turns }, strict: true })
  rehearsals.push(rehearsal)
  const model = openaiResponses({
    model: 'm',
    provider: 'p',
    baseURL: rehearsal.url,
    apiKey: 'none',
    hostedTools: [{ type: 'mcp', server_label: 'zip', require_approval: 'always' }],
  })
  const agent = () => createAgent({ model, tools: [tool('look', () => 'seen')], ...options })
  const sent = (at: number) => ((rehearsal.requests.at(at)?.sent ?? {}) as { input: JsonObject[] }).input
  return { rehearsal, model, agent, sent }
}

const approvalRequest = (id: string, url = 'https://herons.test') => ({
  type: 'mcp_approval_request',
  id,
  server_label: 'zip',
  name: 'shorten',
  arguments: JSON.stringify({ url }),
})
const yes = (id: string) => ({ type: 'mcp_approval_response', approval_request_id: id, approve: true })
const no = (id: string, reason: string) => ({ ...yes(id), approve: false, reason })

describe.each(sampledRows([true, false]))(
  'an approval request of the provider for its own tool (stream: %s)',
  (stream) => {
    it("is an ordinary approval, and an approval is sent in the provider's format", async () => {
      const { agent, sent } = await theatre([{ reasoning: 'I think.', toolCalls: [shorten()] }, done], {
        stream,
      })
      const run = agent().run('Shorten it.')
      const events: AgentEvent[] = []
      run.events$.subscribe((event) => void events.push(event))
      const waiting = await run.result
      if (waiting.state !== 'WAITING_FOR_INPUT') throw new Error('It asks.')
      const [call] = waiting.pending
      expect(call).toMatchObject({
        callId: 'mcpr_1_1',
        name: 'zip.shorten',
        arguments: '{"url":"https://herons.test"}',
        needs: 'approval',
        hosted: true,
      })
      expect(events).toContainEqual(expect.objectContaining({ type: 'approval_requested', hosted: true }))
      run.approve(call as NonNullable<typeof call>)
      expect(await run.result).toMatchObject({ state: 'COMPLETED', output: 'Done.', steps: 2 })
      expect(sent(1).slice(1)).toEqual([
        expect.objectContaining({ type: 'reasoning', encrypted_content: expect.any(String) }),
        approvalRequest('mcpr_1_1'),
        yes('mcpr_1_1'),
      ])
    })

    it('can be answered from anywhere, by its current call', async () => {
      const { agent, sent } = await theatre([{ toolCalls: [shorten()] }, done], {
        stream,
        store: memoryStore(),
      })
      const waiting = await agent().run('Shorten it.', { session: 's' }).result
      for (const call of waiting.pending ?? []) {
        expect(await agent().send('s', { type: 'approve', ...call })).toMatchObject({ status: 'waiting' })
      }
      expect(await (await agent().resume('s')).result).toMatchObject({ state: 'COMPLETED' })
      expect(sent(1).at(-1)).toEqual(yes('mcpr_1_1'))
    })

    it('sends a rejection with its reason, next to calls of our own', async () => {
      const { agent, sent } = await theatre(
        [{ text: 'Let me.', toolCalls: [{ name: 'look' }, shorten(), shorten('https://egrets.test')] }, done],
        { stream },
      )
      const run = agent().run('Shorten them.')
      await run.result
      run.reject('mcpr_1_2', 'Not that one.')
      run.approve('mcpr_1_3')
      expect(await run.result).toMatchObject({ state: 'COMPLETED' })
      expect(sent(1).slice(3)).toEqual([
        approvalRequest('mcpr_1_2'),
        approvalRequest('mcpr_1_3', 'https://egrets.test'),
        { type: 'function_call_output', call_id: 'call_1_1', output: 'seen' },
        no('mcpr_1_2', 'Rejected by the user: Not that one.'),
        yes('mcpr_1_3'),
      ])
    })

    it('waits in a store, is answered after a resume, and continues in a fork and in the next run', async () => {
      const store = memoryStore()
      const { agent, sent } = await theatre([{ toolCalls: [shorten()] }, done, done, done], { stream, store })
      await agent().run('Shorten it.', { session: 's' }).result
      const fork = await agent().fork('s')
      const run = await agent().resume('s')
      for (const call of (await run.result).pending ?? []) run.approve(call)
      expect((await run.result).state).toBe('COMPLETED')
      expect(sent(1).slice(1)).toEqual([approvalRequest('mcpr_1_1'), yes('mcpr_1_1')])
      const other = await agent().resume(fork)
      other.reject('mcpr_1_1')
      expect((await other.result).state).toBe('COMPLETED')
      expect(sent(2).slice(1)).toEqual([approvalRequest('mcpr_1_1'), no('mcpr_1_1', 'Rejected by the user.')])
      await agent().run('And?', { session: 's' }).result
      expect(sent(3).slice(1, 3)).toEqual([approvalRequest('mcpr_1_1'), yes('mcpr_1_1')])
    })

    it('is rejected by a cancelled run, and in a custom conversation', async () => {
      const { agent, sent } = await theatre([{ toolCalls: [shorten()] }, done, done], {
        stream,
        store: memoryStore(),
      })
      const run = agent().run('Shorten it.', { session: 's' })
      await run.result
      run.cancel()
      const { messages } = await run.result
      await agent().run('And?', { session: 's' }).result
      expect(sent(1).slice(1, 3)).toEqual([
        approvalRequest('mcpr_1_1'),
        no('mcpr_1_1', expect.stringMatching(/cancelled/)),
      ])
      const stored = (JSON.parse(JSON.stringify(messages)) as HistoryMessage[]).map((message) =>
        message.role === 'tool' ? { ...message, content: 'Approved.', data: undefined } : message,
      )
      await agent().run([...stored, { role: 'user', content: 'And?' }]).result
      expect(sent(2).slice(1, 3)).toEqual([approvalRequest('mcpr_1_1'), no('mcpr_1_1', 'Approved.')])
    })

    it('of a sub-agent waits at the top level, with its path', async () => {
      const { agent, sent } = await theatre([{ toolCalls: [shorten()] }, done], { stream })
      const boss = await startRehearsal({
        scenario: { turns: [{ toolCalls: [{ name: 'helper', arguments: { task: 'x' } }] }, done] },
      })
      rehearsals.push(boss)
      const helper = agent().asTool({ name: 'helper', description: 'Helps.', maxSteps: 5 })
      const run = createAgent({
        model: openaiChat({ model: 'b', baseURL: boss.url, apiKey: 'none' }),
        tools: [helper],
        stream,
      }).run('Go.')
      const [call] = (await run.result).pending ?? []
      expect(call).toMatchObject({ path: ['helper'], name: 'zip.shorten', hosted: true })
      if (call === undefined) throw new Error('It asks.')
      expect(() => run.approve(call, { task: 'x' })).toThrow(/The provider executes this call/)
      run.approve(call)
      expect(await run.result).toMatchObject({ state: 'COMPLETED' })
      expect(sent(1).at(-1)).toEqual(yes('mcpr_1_1'))
    })

    it('is refused if shields would change the call, and stays if they change the answer', async () => {
      const shields = {
        toolInput: [patternShield({ name: 'keys', patterns: [/sk-\d+/], action: 'redact' })],
        output: [patternShield({ name: 'numbers', patterns: [/4711/], action: 'redact' })],
      }
      const { agent, sent } = await theatre(
        [
          { reasoning: 'It is 4711.', text: 'It is 4711.', toolCalls: [shorten('x?sk-123'), shorten()] },
          done,
        ],
        { stream, shields },
      )
      const run = agent().run('Shorten it.')
      const { pending } = await run.result
      expect(pending?.map(({ callId }) => callId)).toEqual(['mcpr_1_2'])
      run.approve('mcpr_1_2')
      const { messages } = await run.result
      expect(sent(1).slice(2)).toEqual([
        { ...approvalRequest('mcpr_1_1'), arguments: expect.not.stringContaining('sk-') },
        approvalRequest('mcpr_1_2'),
        no('mcpr_1_1', expect.any(String)),
        yes('mcpr_1_2'),
      ])
      // A time in milliseconds may contain the number by chance.
      const withoutTimes = messages.map((message) => ({ ...message, createdAt: 0 }))
      expect(JSON.stringify([sent(1), withoutTimes])).not.toMatch(/sk-123|4711/)
    })
  },
)

it('cannot be edited: neither by an approver nor in a fork', async () => {
  const store = memoryStore()
  const { agent } = await theatre([{ toolCalls: [shorten()] }, done], { store })
  const run = agent().run('Shorten it.', { session: 's' })
  await run.result
  expect(() => run.approve('mcpr_1_1', { url: 'https://egrets.test' })).toThrow(UsageError)
  const edit = { call: 'mcpr_1_1', arguments: { url: 'x' } }
  await expect(agent().fork('s', undefined, { edit })).rejects.toThrow(/The provider executes this call/)
  run.approve('mcpr_1_1')
  await run.result
  const result = agent().fork('s', undefined, { edit: { call: 'mcpr_1_1', result: 'x' } })
  await expect(result).rejects.toMatchObject({ code: 'already_answered' })
})

it('treats an edit that still reaches the machine as a rejection', async () => {
  const { agent, sent } = await theatre([{ toolCalls: [shorten()] }, done])
  const actor = createActor(agent().machine, { input: 'Shorten it.' }).start()
  await waitFor(actor, ({ context }) => context.state === 'WAITING_FOR_INPUT')
  actor.send({ type: 'APPROVE', callId: 'mcpr_1_1', arguments: '{"url":"https://egrets.test"}' })
  await waitFor(actor, ({ status }) => status === 'done')
  expect(sent(1).at(-1)).toEqual(no('mcpr_1_1', expect.stringMatching(/different arguments/)))
})

it('keeps repeated ids apart', async () => {
  const { agent, sent } = await theatre([
    { toolCalls: [shorten('a', { id: 'mcpr_0' })] },
    { toolCalls: [shorten('b', { id: 'mcpr_0' })] },
    done,
  ])
  const run = agent().run('Shorten them.')
  await run.result
  run.approve('mcpr_0')
  await run.result
  run.reject('mcpr_0')
  expect((await run.result).state).toBe('COMPLETED')
  const [, first, , second] = sent(2)
    .slice(1)
    .map((item) => item['id'] ?? item['approval_request_id'])
  expect([sent(2)[2], sent(2)[4]]).toMatchObject([{ approve: true }, { approve: false }])
  expect(first).toBe('mcpr_0')
  expect(second).not.toBe('mcpr_0')
})

it.each(['log', 'live'] as const)('plays as recorded, with tools by %s', async (tools) => {
  const { agent } = await theatre([{ toolCalls: [shorten('a')] }, { toolCalls: [shorten('b')] }, done], {
    store: memoryStore(),
  })
  const run = agent().run('Shorten them.', { session: 's' })
  for (let rest = await run.result; rest.pending; rest = await run.result)
    for (const call of rest.pending) run.approve(call)
  const recording = await recordSession(agent(), 's')
  expect(await replaySession(agent(), recording, { tools })).toMatchObject({ state: 'COMPLETED' })
  expect(await replaySession(createRecordedAgent(recording), recording)).toMatchObject({ state: 'COMPLETED' })
})

it('calls no local tool of the same name, and reports the outcome to another provider', async () => {
  let called = 0
  const own = defineTool({
    name: 'shorten',
    description: 'Ours.',
    input: z.object({ url: z.string() }),
    execute: () => (called += 1),
  })
  const { model, sent } = await theatre([{ toolCalls: [shorten()] }, { status: 503 }])
  const other = await startRehearsal({ scenario: { turns: [done] }, strict: true })
  rehearsals.push(other)
  const second = openaiChat({ model: 'two', baseURL: other.url, apiKey: 'none' })
  const run = createAgent({ model: withFallbacks([model, second]), tools: [own] }).run('Shorten it.')
  for (const call of (await run.result).pending ?? []) run.approve(call)
  expect(await run.result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
  expect(called).toBe(0)
  expect(sent(1).at(-1)).toEqual(yes('mcpr_1_1'))
  expect(other.requests[0]?.body.messages.slice(1)).toEqual([
    {
      role: 'assistant',
      content: null,
      tool_calls: [
        {
          id: 'mcpr_1_1',
          type: 'function',
          function: { name: 'zip_shorten', arguments: approvalRequest('').arguments },
        },
      ],
    },
    { role: 'tool', tool_call_id: 'mcpr_1_1', content: expect.stringMatching(/^Approved/) },
  ])
})
