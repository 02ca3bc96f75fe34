import { type Agent, memoryStore } from '../../src/index.js'
import { listRunSteps } from '../../src/studio/run-steps.js'
import type { SessionView } from '../../src/studio/protocol.js'
import type { RequestView } from '../../src/studio/request-view.js'
import { paths } from '../../src/studio/routes.js'
import { eventful, rehearsedAgent } from './rehearsed.js'
import { type Visitor, visit } from './visitor.js'

async function played(withAgent: boolean): Promise<{ visitor: Visitor; view: SessionView }> {
  const store = memoryStore()
  const { agent, close } = await rehearsedAgent(store, eventful, {
    instructions: 'You keep the books.',
    sampling: { temperature: 0.2 },
  })
  await agent.run('Pay the invoice of sk-proj-abcdefghijklmnopqrstuvwxyz123456.', { session: 's' }).result
  await close()
  const visitor = await visit(withAgent ? { store, agent: agent as Agent } : { store })
  return { visitor, view: await visitor.get<SessionView>(paths.session('s')) }
}

const listEnds = ({ rows }: SessionView): number[] =>
  rows.filter(({ label }) => /^(answer|model failed)/.test(label)).map(({ seq }) => seq)

describe('the request of a step', () => {
  it('has instructions, new messages, tools, settings, model and the raw response', async () => {
    const { visitor, view } = await played(true)
    const [failed = 0, first = 0, second = 0] = listEnds(view)
    const failure = await visitor.get<RequestView>(paths.request('s', failed, false))
    expect(failure).toMatchObject({ step: 1, answer: null, response: { code: expect.any(String) as string } })
    const request = await visitor.get<RequestView>(paths.request('s', second, false))
    expect(request).toMatchObject({
      seq: second,
      step: 2,
      model: { name: 'rehearsal', host: expect.stringMatching(/^127\.0\.0\.1:\d+$/) as string },
      instructions: 'You keep the books.',
      total: 3,
      settings: { temperature: 0.2, stream: true },
      answer: { model: 'rehearsal', finishReason: 'tool_calls', isEstimated: false },
    })
    expect(request.tools.map(({ name }) => name)).toEqual(['look_up', 'pay', 'poll_nothing', 'research'])
    expect(request.tools[0]).toMatchObject({
      description: 'Looks something up.',
      parameters: { properties: { what: { type: 'string' } } },
    })
    expect(request.messages.map(({ role }) => role)).toEqual(['assistant', 'tool'])
    expect(request.messages[0]?.calls).toEqual([{ name: 'look_up', arguments: '{"what":"the invoice"}' }])
    expect(request.response).toMatchObject({ toolCalls: [{ function: { name: 'research' } }] })
    const all = await visitor.get<RequestView>(paths.request('s', second, true))
    expect(all.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool'])
    expect(JSON.stringify(all)).not.toContain('sk-proj-')
    // A retry repeats the messages of the attempt that failed.
    const retried = await visitor.get<RequestView>(paths.request('s', first, false))
    expect([retried.messages, retried.total]).toEqual([[], 1])
  })

  it('contains the data of the log without the agent', async () => {
    const { visitor, view } = await played(false)
    const request = await visitor.get<RequestView>(paths.request('s', listEnds(view).at(-1) ?? 0, true))
    expect(request).toMatchObject({ model: null, instructions: null, settings: null, total: 5 })
    expect(request.tools).toContainEqual({ name: 'pay', description: null, parameters: null })
    expect(request.answer?.model).toBe('rehearsal')
  })

  it('refuses a record that ends no request', async () => {
    const { visitor } = await played(false)
    for (const seq of [1, 2, 99]) {
      const { status, body } = await visitor.raw(paths.request('s', seq, false))
      expect([status, (JSON.parse(body) as { error: object }).error]).toEqual([
        400,
        { code: 'invalid_option', key: 'seq', message: expect.stringContaining(`Record ${seq} `) as string },
      ])
    }
  })
})

it('names the sources of tokens at each record, and they add up', async () => {
  const { view } = await played(false)
  const spent = view.rows.flatMap((row) => (row.spent ? [row.spent] : []))
  expect(new Set(spent.map(({ by, name }) => `${by} ${name}`))).toEqual(
    new Set(['model rehearsal', 'sub-agent research']),
  )
  expect(spent.reduce((sum, { tokens }) => sum + tokens, 0)).toBe(view.rows.at(-1)?.tokens)
  expect(view.session.models).toEqual(['rehearsal'])
})

it('a request in progress is the last step, and its time advances', async () => {
  const { view } = await played(false)
  // As the page sees it while the second request is under way.
  const place = view.rows.findIndex(({ label }) => label === 'look_up ok')
  const rows = view.rows.slice(0, place + 1)
  const last = rows.at(-1)
  const bars = view.bars
    .filter(({ fromSeq }) => fromSeq <= (last?.seq ?? 0))
    .map((bar) =>
      (bar.toSeq ?? 99) > (last?.seq ?? 0)
        ? { ...bar, to: null, toSeq: null, status: 'running' as const }
        : bar,
    )
  const steps = listRunSteps({ rows, bars }, (last?.at ?? 0) + 4_000)
  expect(steps.map(({ step, open }) => [step, open])).toEqual([
    [1, []],
    [2, ['request']],
  ])
  expect(steps[1]).toMatchObject({
    from: place,
    to: place,
    place,
    modelMs: 4_000,
    ms: 4_000,
    calls: [],
    tokens: 0,
  })
})
