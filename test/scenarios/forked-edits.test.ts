import { z } from 'zod'
import { type AgentOptions, defineTool, type ForkEdit, patternShield, type Policy } from '../../src/index.js'
import type { Turn } from '../../src/rehearsal/index.js'
import { memoryStore } from '../../src/core/sessions/store/memory-store.js'
import type { LogRecord } from '../../src/core/sessions/store/store.js'
import { findHistoryProblem } from '../support/history.js'
import { again, stage, textOf } from '../support/play.js'
import { call, text, tool } from '../support/tools.js'

/** Pays. Amounts above ten need approval. */
function transfer(paid: number[]) {
  return defineTool({
    name: 'transfer',
    description: 'Moves money.',
    input: z.object({ amount: z.number().max(1000) }),
    needsApproval: ({ amount }) => amount > 10,
    execute: ({ amount }) => {
      paid.push(amount)
      return `moved ${amount}`
    },
  })
}

async function createScene(turns: readonly Turn[], options: Partial<AgentOptions> = {}) {
  const store = memoryStore()
  const play = await stage(turns, { store, ...options })
  return { play, agent: play.agent, store }
}

/** The first record for which the condition holds. */
async function recordWhere(
  { agent, store }: Awaited<ReturnType<typeof createScene>>,
  holds: (state: string) => boolean,
): Promise<number> {
  for (const { seq } of store.read('s')) {
    const { snapshot } = await agent.replay('s', { to: seq })
    if (snapshot && holds(JSON.stringify(snapshot.value))) return seq
  }
  throw new Error('There is no such record.')
}

const origin = (records: readonly LogRecord[]) =>
  (JSON.parse(records[0]?.data ?? '{}') as { forkedFrom?: object }).forkedFrom

test('a fork with an edited message sends it, and the original session keeps every byte', async () => {
  const scene = await createScene([call('look'), text('One.'), text('Another.')], { tools: [tool('look')] })
  const { agent, store, play } = scene
  await agent.run('Count the files.', { session: 's' }).result
  const before = JSON.stringify(store.read('s'))
  const edit: ForkEdit = { message: 'm1', content: 'Count the folders.' }
  const id = await agent.fork('s', 2, { edit })
  const other = await (await agent.resume(id)).result
  expect(other).toMatchObject({ state: 'COMPLETED', output: 'Another.', sessionId: id })
  expect(play.wire(-1).map(textOf)).toEqual(['Count the folders.'])
  expect(JSON.stringify(store.read('s'))).toBe(before)
  expect(origin(store.read(id))).toEqual({ sessionId: 's', seq: 2, edit })
})

test('at the end of a run, the conversation continues from the edit, without the old run', async () => {
  const { agent, play } = await createScene([text('It is blue.'), text('Green.')])
  await agent.run('It is blue.', { session: 's' }).result
  const id = await agent.fork('s', undefined, { edit: { message: 'm1', content: 'It is green.' } })
  await expect(agent.resume(id)).rejects.toMatchObject({ code: 'nothing_to_resume' })
  await agent.run('Which colour?', { session: id }).result
  expect(play.wire(-1).map(textOf)).toEqual(['It is green.', 'It is blue.', 'Which colour?'])
})

test.each(['the result of a batch in progress', 'one that is settled'])(
  'another result: %s',
  async (where) => {
    const slow = tool('slow', () => 'slow')
    const scene = await createScene(
      [{ toolCalls: [{ id: 'a', name: 'slow', arguments: {} }] }, text('One.'), text('Another.')],
      { tools: [slow] },
    )
    const { agent, play } = scene
    await agent.run('Go.', { session: 's' }).result
    const record = await recordWhere(scene, (state) => state.includes('executing'))
    const seq = where === 'one that is settled' ? record + 1 : record
    const forked = agent.fork('s', seq, { edit: { call: 'a', result: { total: 12 } } })
    if (seq === record) {
      await expect(forked).rejects.toMatchObject({ code: 'unknown_call', subject: 'a' })
      return
    }
    const result = await (await agent.resume(await forked)).result
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'Another.' })
    expect(play.wire(-1).map(textOf)).toEqual(['Go.', '', '{"total":12}'])
    expect(slow.inputs).toHaveLength(1)
  },
)

test('an edited result that is an Error is an error result', async () => {
  const { agent, store } = await createScene([call('look', {}), text('One.')], { tools: [tool('look')] })
  const done = await agent.run('Go.', { session: 's' }).result
  const toolMessage = done.messages.find((message) => message.role === 'tool')
  const edit = { call: toolMessage?.tool_call_id ?? '', result: new Error('It is locked.') }
  const { messages } = await agent.replay(await agent.fork('s', undefined, { edit }))
  expect(messages[2]).toMatchObject({ content: 'It is locked.', data: { status: 'error' } })
  expect(findHistoryProblem(messages)).toBeNull()
  expect(store.list()).toHaveLength(2)
})

describe('edited instructions', () => {
  test('apply only in the fork: in its run, after a resume in another process, and in its next run', async () => {
    const scene = await createScene(
      [call('look'), text('Done.'), call('look'), ...['a', 'b', 'c', 'd'].map((words) => text(words))],
      {
        instructions: 'You are long.',
        tools: [tool('look')],
      },
    )
    const { agent, play, store } = scene
    await agent.run('Go.', { session: 's' }).result
    const before = JSON.stringify(store.read('s'))
    const edit = { instructions: 'You are brief.' }
    const id = await agent.fork('s', 2, { edit })
    expect(origin(store.read(id))).toEqual({ sessionId: 's', seq: 2, edit })
    await (await again(play, { instructions: 'You are long.', tools: [tool('look')], store }).resume(id))
      .result
    expect(textOf(play.wire(-1)[0])).toBe('You are brief.')
    await agent.run('And now?', { session: id }).result
    expect(play.wire(-1).map(textOf).slice(0, 2)).toEqual(['You are brief.', 'Go.'])
    const later = await agent.fork(id, undefined, { edit: { instructions: '' } })
    await agent.run('And now?', { session: later }).result
    expect(textOf(play.wire(-1)[0])).toBe('Go.')
    await agent.run('And you?', { session: 's' }).result
    expect(textOf(play.wire(-1)[0])).toBe('You are long.')
    expect(JSON.stringify(store.read('s')).startsWith(before.slice(0, -1))).toBe(true)
  })

  test('come before the instructions of a step', async () => {
    const { agent, play } = await createScene([text('One.'), text('Two.')], {
      instructions: () => 'Written anew.',
      prepareStep: ({ step }) => ({ instructions: `Of step ${step}.`, toolChoice: 'none' }),
      tools: [tool('look')],
    })
    await agent.run('Go.', { session: 's' }).result
    expect(textOf(play.wire(-1)[0])).toBe('Of step 1.')
    const id = await agent.fork('s', undefined, { edit: { instructions: 'Mine.' } })
    await agent.run('Go on.', { session: id }).result
    expect(textOf(play.wire(-1)[0])).toBe('Mine.')
  })

  test.each([{ instructions: 3 }, { instructions: 'x', message: 'm1' }, { instructions: 'x', call: 'a' }])(
    '%j is not a valid edit',
    async (edit) => {
      const { agent } = await createScene([text('One.')])
      await agent.run('Go.', { session: 's' }).result
      await expect(agent.fork('s', undefined, { edit: edit as never })).rejects.toMatchObject({
        code: 'invalid_input',
        subject: 'edit',
      })
    },
  )
})

describe('a fork that asks first', () => {
  const look = tool('look', () => 'seen', { readOnly: true })

  test('requires approval for each call that is not read-only, also in later runs, and keeps earlier results', async () => {
    const send = tool('send', () => 'sent', { idempotent: true })
    const tools = [look, send]
    const scene = await createScene(
      [call('send'), text('Done.'), call('look'), call('send'), text('So.'), call('send')],
      { tools },
    )
    const { agent, play, store } = scene
    await agent.run('Go.', { session: 's' }).result
    let requests = 0
    const settled = await recordWhere(scene, (state) => state.includes('requesting') && ++requests === 2)
    const id = await agent.fork('s', settled, { askFirst: true })
    const run = await again(play, { tools, store }).resume(id)
    const { state, pending = [], messages } = await run.result
    expect(state).toBe('WAITING_FOR_INPUT')
    expect(pending.map(({ name }) => name)).toEqual(['send'])
    expect(messages.filter(({ role }) => role === 'tool').map(textOf)).toEqual(['sent', 'seen'])
    expect(send.inputs).toHaveLength(1)
    run.reject(pending[0]?.callId ?? '')
    expect(await run.result).toMatchObject({ state: 'COMPLETED' })
    const next = await agent.run('Once more.', { session: id }).result
    expect(next.pending).toMatchObject([{ name: 'send', needs: 'approval' }])
    expect(send.inputs).toHaveLength(1)
  })

  test('asks about calls that were running, but not about completed calls', async () => {
    const send = tool('send', () => 'sent')
    const scene = await createScene(
      [
        {
          toolCalls: [
            { id: 'a', name: 'send', arguments: {} },
            { id: 'b', name: 'look', arguments: {} },
          ],
        },
        text('Done.'),
        text('Done.'),
      ],
      { tools: [look, send] },
    )
    const { agent } = scene
    await agent.run('Go.', { session: 's' }).result
    const record = await recordWhere(scene, (state) => state.includes('executing'))
    const id = await agent.fork('s', record, {
      askFirst: true,
      edit: { message: 'm1', content: 'Go slowly.' },
    })
    const run = await agent.resume(id)
    expect((await run.result).pending).toMatchObject([{ callId: 'a', needs: 'approval' }])
    expect(send.inputs).toHaveLength(1)
    run.approve('a')
    expect(await run.result).toMatchObject({ state: 'COMPLETED' })
    expect(send.inputs).toHaveLength(2)
  })
})

const asks = (amount: number): Turn => ({
  toolCalls: [
    { id: 'a', name: 'transfer', arguments: { amount } },
    { id: 'b', name: 'look', arguments: {} },
  ],
})

/** The same message, with the provider's opaque data unchanged. */
function signed(amount: number): Turn {
  const call = (id: string, name: string, args: string, extra: object) => ({
    id,
    type: 'function',
    function: { name, arguments: args },
    ...extra,
  })
  const message = {
    role: 'assistant',
    content: null,
    reasoning_details: [{ type: 'reasoning.encrypted', data: 'of the whole group' }],
    tool_calls: [
      call('a', 'transfer', JSON.stringify({ amount }), {}),
      call('b', 'look', '{}', { extra_content: { google: { thought_signature: 'of the whole group' } } }),
    ],
  }
  const choices = [{ index: 0, finish_reason: 'tool_calls', message }]
  const body = { id: 'x', object: 'chat.completion', created: 1, model: 'm', choices }
  return { raw: { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } } }
}

describe('edited arguments', () => {
  test("run once, and the model's text next to them stays complete", async () => {
    const paid: number[] = []
    const tools = [transfer(paid), tool('look')]
    const scene = await createScene([signed(500), text('Done.')], { tools, stream: false })
    const { agent, play } = scene
    await agent.run('Pay.', { session: 's' }).result
    const id = await agent.fork('s', undefined, { edit: { call: 'a', arguments: { amount: 20 } } })
    const run = await agent.resume(id)
    const { pending = [] } = await run.result
    expect(pending).toMatchObject([{ callId: 'a', arguments: '{"amount":20}' }])
    expect(() => run.approve({ callId: 'a', fingerprint: 'of the other one' })).toThrow(
      /is for outdated arguments/,
    )
    for (const question of pending) run.approve(question)
    expect(await run.result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
    expect(paid).toEqual([20])
    const whole = JSON.stringify((await agent.replay('s')).messages)
    expect(whole.split('of the whole group')).toHaveLength(3)
    const sent = play.wire(-1)
    expect(JSON.stringify(sent)).not.toContain('of the whole group')
    expect(textOf(sent.at(-2))).toBe('moved 20')
    expect((await agent.replay('s')).run).toMatchObject({ pending: [{ arguments: '{"amount":500}' }] })
  })

  test('are checked again, and may now need a person', async () => {
    const paid: number[] = []
    const scene = await createScene([asks(5), text('Done.'), text('Done.')], {
      tools: [transfer(paid), tool('look')],
    })
    const { agent } = scene
    await agent.run('Pay.', { session: 's' }).result
    const before = await recordWhere(scene, (state) => state.includes('executing'))
    const edit = (amount: number) => ({ edit: { call: 'a', arguments: { amount } } })
    const dear = await agent.resume(await agent.fork('s', before, edit(700)))
    expect(await dear.result).toMatchObject({ state: 'WAITING_FOR_INPUT', reason: 'approval' })
    const cheap = await agent.resume(await agent.fork('s', before, edit(7)))
    expect(await cheap.result).toMatchObject({ state: 'COMPLETED' })
    expect(paid).toEqual([5, 7])
  })

  test('are refused if they are invalid or of a completed call, and nothing is forked', async () => {
    const tools = [transfer([]), tool('look')]
    const { agent, store } = await createScene([asks(500)], { tools })
    await agent.run('Pay.', { session: 's' }).result
    const fork = (edit: unknown) => agent.fork('s', undefined, { edit: edit as ForkEdit })
    await expect(fork({ call: 'a', arguments: { amount: 'much' } })).rejects.toMatchObject({
      code: 'invalid_input',
      subject: 'a',
      message: expect.stringMatching(/nothing was forked.*amount/s) as string,
    })
    await expect(fork({ call: 'b', arguments: {} })).rejects.toMatchObject({ code: 'already_answered' })
    await expect(fork({ call: 'c', arguments: {} })).rejects.toMatchObject({
      code: 'unknown_call',
      message: expect.stringContaining('a, b') as string,
    })
    await expect(fork({ call: 'c', result: 1 })).rejects.toMatchObject({ code: 'unknown_call' })
    await expect(fork({ message: 'm2', content: 'No.' })).rejects.toMatchObject({
      code: 'unknown_message',
      message: expect.stringContaining('m1') as string,
    })
    expect(store.list()).toHaveLength(1)
  })

  test('are refused if a policy denies them, and nothing is forked', async () => {
    const policy: Policy = {
      id: 'limit',
      decide: ({ arguments: { amount } }) =>
        amount > 100 ? { decision: 'deny', reason: 'Too much.' } : 'ask',
    }
    const { agent, store } = await createScene([asks(50)], { tools: [transfer([]), tool('look')], policy })
    await agent.run('Pay.', { session: 's' }).result
    const edit = { call: 'a', arguments: { amount: 500 } }
    await expect(agent.fork('s', undefined, { edit })).rejects.toMatchObject({
      code: 'denied_by_policy',
      subject: 'a',
      message: expect.stringMatching(/edited arguments.*Too much/s) as string,
    })
    expect(store.list()).toHaveLength(1)
  })
})

test.each([
  [{ message: 'm1' }],
  [{ message: 'm1', content: ' ' }],
  [{ message: 'm1', content: [{ type: 'video' }] }],
  [{ message: 'm1', content: 'a', call: 'a' }],
  [{ call: 'a' }],
  [{ call: 'a', arguments: {}, result: 1 }],
  [{ call: 'a', arguments: 10n }],
  ['m1'],
  [null],
])('%p is not a valid edit', async (edit) => {
  const { agent } = await createScene([text('One.')], {})
  await agent.run('Go.', { session: 's' }).result
  await expect(agent.fork('s', 2, { edit: edit as never })).rejects.toMatchObject({
    code: expect.stringMatching(/^(invalid_input|unknown_call)$/) as string,
  })
})

describe('shields check edits like original content', () => {
  const secret = 'falcon-4711'
  const points = ['input', 'toolInput', 'toolOutput'] as const
  const edits: Record<(typeof points)[number], ForkEdit> = {
    input: { message: 'm1', content: [{ type: 'text', text: `It is ${secret}.` }] },
    toolInput: { call: 'a', arguments: { amount: 11, note: secret } },
    toolOutput: { call: 'b', result: `It is ${secret}.` },
  }

  test.each(points)('%s', async (point) => {
    for (const action of ['block', 'redact'] as const) {
      const shield = patternShield({ name: 'word', patterns: [/falcon-\d+/g], action })
      const { agent, store } = await createScene([asks(500), text('Done.')], {
        tools: [tool('transfer', () => 'ok', { needsApproval: true }), tool('look')],
        shields: { [point]: [shield] },
      })
      await agent.run('Pay.', { session: 's' }).result
      const forked = agent.fork('s', undefined, { edit: edits[point] })
      if (action === 'block') {
        await expect(forked).rejects.toMatchObject({ code: 'refused_by_shield' })
        expect(store.list()).toHaveLength(1)
        continue
      }
      const id = await forked
      expect(JSON.stringify(store.read(id))).not.toContain(secret)
      expect((await agent.replay(id)).run?.state).toBe('WAITING_FOR_INPUT')
    }
  })

  test('a message that a shield has refused can be reworded', async () => {
    const shields = { input: [patternShield({ name: 'word', patterns: [/falcon/], action: 'block' })] }
    const { agent, play } = await createScene([text('Hello.')], { shields })
    expect(await agent.run(secret, { session: 's' }).result).toMatchObject({ state: 'BLOCKED' })
    const id = await agent.fork('s', 2, { edit: { message: 'm1', content: 'Hello?' } })
    expect(await (await agent.resume(id)).result).toMatchObject({ state: 'COMPLETED', output: 'Hello.' })
    expect(play.wire(-1).map(textOf)).toEqual(['Hello?'])
  })
})

test('memory is searched again for an edited message', async () => {
  const requests: string[] = []
  const memory = {
    retrieve: (query: string) => {
      requests.push(query)
      return Promise.resolve([{ source: 'notes', text: `About ${query}` }])
    },
  }
  const scene = await createScene([text('One.'), text('Two.')], { memory: memory as never })
  await scene.agent.run('Cats', { session: 's' }).result
  const seq = await recordWhere(scene, (state) => state.includes('requesting'))
  const id = await scene.agent.fork('s', seq, { edit: { message: 'm1', content: 'Dogs' } })
  await (await scene.agent.resume(id)).result
  expect(requests).toEqual(['Cats', 'Dogs'])
  expect(JSON.stringify(scene.play.wire(-1))).toContain('About Dogs')
})
