import { createActor, setup, SimulatedClock, type Snapshot } from 'xstate'
import { z } from 'zod'
import { createAgent, defineTool, memoryStore, type ToolExecution } from '../../src/index.js'
import { call, ManualModel, settled } from '../support/manual-model.js'
import { textOf } from '../support/play.js'

/** An agent with two tools. One answers at once, the other waits. */
function stage() {
  const model = new ManualModel()
  const ran: string[] = []
  const agent = createAgent({
    model,
    tools: [
      defineTool({
        name: 'quick',
        description: 'Answers at once.',
        input: z.object({}),
        execute: () => {
          ran.push('quick')
          return 'quick result'
        },
      }),
      defineTool({
        name: 'slow',
        description: 'Answers on the second try.',
        idempotent: true,
        input: z.object({}),
        execute: () => {
          ran.push('slow')
          return ran.filter((name) => name === 'slow').length > 1
            ? 'slow result'
            : new Promise<string>(() => undefined)
        },
      }),
      defineTool({
        name: 'once',
        description: 'Must not run twice.',
        input: z.object({}),
        execute: () => {
          ran.push('once')
          return new Promise<string>(() => undefined)
        },
      }),
    ],
  })
  return { agent, model, ran }
}

const stored = (snapshot: unknown): Snapshot<unknown> =>
  JSON.parse(JSON.stringify(snapshot)) as Snapshot<unknown>

test('a run restored during a request repeats the request', async () => {
  const { agent, model } = stage()
  const run = agent.run('Go.')
  await settled()
  const snapshot = stored(run.snapshot())
  run.cancel()

  const actor = createActor(agent.machine, { snapshot }).start()
  await settled()
  expect(model.attempts).toHaveLength(2)
  model.pending?.answer({ text: 'Done.' })
  await settled()
  expect(actor.getSnapshot().output).toMatchObject({ state: 'COMPLETED', output: 'Done.', steps: 1 })
})

test('a restored run passes the supplied context to its tools', async () => {
  const model = new ManualModel()
  const who = defineTool({
    name: 'who',
    description: 'Says whose context it has.',
    input: z.object({}),
    execute: (_input, { context }: ToolExecution<{ user: string }>) => context.user,
  })
  const agent = createAgent({ model, tools: [who] })
  const first = createActor(agent.machine, {
    input: agent.createInput('Go.', { context: { user: 'ann' } }),
  }).start()
  await settled()
  const snapshot = stored(first.getPersistedSnapshot())
  first.stop()

  const input = agent.createInput('Not read.', { context: { user: 'ann, again' } })
  const actor = createActor(agent.machine, { snapshot, input }).start()
  await settled()
  model.pending?.answer({ toolCalls: [call('a', 'who')] })
  await settled()
  expect(textOf(model.pending?.request.messages.at(-1) as never)).toBe('ann, again')
  model.pending?.answer({ text: 'Done.' })
  await settled()
  expect(JSON.stringify(actor.getSnapshot().context.messages)).not.toContain('Not read.')

  // As a child of another machine, it has no input to restore from.
  const desk = setup({ actors: { agent: agent.machine } }).createMachine({
    invoke: { id: 'agent', src: 'agent', input: agent.createInput('Go.', { context: { user: 'ann' } }) },
  })
  const before = createActor(desk).start()
  await settled()
  const saved = stored(before.getPersistedSnapshot())
  before.stop()
  const after = createActor(desk, { snapshot: saved }).start()
  await settled()
  model.pending?.answer({ toolCalls: [call('a', 'who')] })
  await settled()
  expect(textOf(model.pending?.request.messages.at(-1) as never)).toMatch(
    /Cannot read properties of undefined/,
  )
  after.stop()
})

test('a restored batch runs only the calls without a result', async () => {
  const { agent, model, ran } = stage()
  const run = agent.run('Go.')
  await settled()
  model.pending?.answer({ toolCalls: [call('a', 'quick'), call('b', 'slow')] })
  await settled()
  const snapshot = stored(run.snapshot())
  run.cancel()
  expect(ran).toEqual(['quick', 'slow'])

  const actor = createActor(agent.machine, { snapshot }).start()
  await settled()
  expect(ran).toEqual(['quick', 'slow', 'slow'])
  model.pending?.answer({ text: 'Done.' })
  await settled()
  const { output } = actor.getSnapshot()
  expect(output?.messages.map(({ content }) => content)).toEqual([
    'Go.',
    null,
    'quick result',
    'slow result',
    'Done.',
  ])
})

test('a call that must not repeat reads that its outcome is unknown', async () => {
  const { agent, model, ran } = stage()
  const run = agent.run('Go.')
  await settled()
  model.pending?.answer({ toolCalls: [call('a', 'once')] })
  await settled()
  const snapshot = stored(run.snapshot())
  run.cancel()
  expect(ran).toEqual(['once'])

  const actor = createActor(agent.machine, { snapshot }).start()
  await settled()
  expect(ran).toEqual(['once'])
  model.pending?.answer({ text: 'Done.' })
  await settled()
  expect(actor.getSnapshot().output?.messages[2]).toMatchObject({
    tool_call_id: 'a',
    content: expect.stringContaining('outcome is unknown') as string,
    data: { status: 'interrupted' },
  })
})

test('a run that is restored too late times out', async () => {
  const model = new ManualModel()
  const clock = new SimulatedClock()
  const agent = createAgent({ model, clock, limits: { timeoutMs: 1000 } })
  const run = agent.run('Go.')
  await settled()
  const snapshot = stored(run.snapshot())
  run.cancel()
  clock.increment(2000)
  const actor = createActor(agent.machine, { snapshot }).start()
  expect(actor.getSnapshot().output).toMatchObject({ state: 'TIMED_OUT', reason: 'timeout' })
  expect(model.attempts).toHaveLength(1)
})

test('a run restored during a back-off waits for the rest, then repeats the request', async () => {
  const model = new ManualModel()
  const clock = new SimulatedClock()
  const agent = createAgent({ model, clock })
  const run = agent.run('Go.')
  await settled()
  model.pending?.fail({ retryAfterMs: 10_000 })
  await settled()
  expect(run.state).toBe('RUNNING')
  const snapshot = stored(run.snapshot())
  run.cancel()

  clock.increment(8_000)
  const actor = createActor(agent.machine, { snapshot }).start()
  clock.increment(1_999)
  await settled()
  expect(model.attempts).toHaveLength(1)
  clock.increment(1)
  await settled()
  expect(model.attempts).toHaveLength(2)
  model.pending?.answer({ text: 'Done.' })
  await settled()
  expect(actor.getSnapshot().output).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
})

test('a restored actor emits its state and continues once, also as a child of another machine', async () => {
  const { agent, model, ran } = stage()
  const parent = setup({ actors: { agent: agent.machine } }).createMachine({
    initial: 'asking',
    states: {
      asking: { invoke: { id: 'agent', src: 'agent', input: 'Go.', onDone: 'done' } },
      done: { type: 'final' },
    },
  })
  const first = createActor(parent).start()
  await settled()
  model.pending?.answer({ toolCalls: [call('a', 'quick'), call('b', 'once')] })
  await settled()
  const snapshot = stored(first.getPersistedSnapshot())
  first.stop()

  const actor = createActor(parent, { snapshot: snapshot as never }).start()
  const states: string[] = []
  actor.getSnapshot().children['agent']?.on('state_changed', ({ to }: { to: string }) => states.push(to))
  await settled()
  expect(ran).toEqual(['quick', 'once'])
  expect(model.attempts).toHaveLength(2)
  model.pending?.answer({ text: 'Done.' })
  await settled()
  expect(actor.getSnapshot().value).toBe('done')
  expect(states).toEqual(['COMPLETED'])
})

test('an interrupted call of a sub-agent without a log is not started again', async () => {
  const model = new ManualModel()
  const child = createAgent({ model: new ManualModel() })
  const store = memoryStore()
  const tools = [child.asTool({ name: 'research', description: 'Looks things up.' })]
  const agent = createAgent({ model, tools, store })
  const run = agent.run('Go.')
  await settled()
  model.pending?.answer({ toolCalls: [call('a', 'research', { task: 'Look.' })] })
  await settled()
  const snapshot = stored(run.snapshot())
  run.cancel()
  createActor(agent.machine, { snapshot }).start()
  await settled()
  expect(textOf(model.pending?.request.messages[2])).toContain('outcome is unknown')
  // A pending request keeps the process alive for two minutes.
  model.pending?.answer({ text: 'Done.' })
  await settled()
})

test('an actor without input is refused', () => {
  const { agent } = stage()
  const errors: unknown[] = []
  const actor = createActor(agent.machine)
  actor.subscribe({ error: (error) => errors.push(error) })
  actor.start()
  expect(errors).toEqual([expect.objectContaining({ name: 'UsageError', code: 'invalid_input' })])
})

test.each([
  ['an empty object', {}],
  ['a run without its transcript', { status: 'active', value: 'PAUSED', context: { runId: 'r', calls: [] } }],
  ['a list', []],
  [
    'the snapshot of another machine',
    { status: 'active', value: 'idle', context: { count: 1 }, children: {} },
  ],
])('an invalid snapshot is refused with a remedy: %s', (_, snapshot) => {
  const { agent } = stage()
  const actor = createActor(agent.machine, { snapshot: snapshot as never })
  const errors: unknown[] = []
  actor.subscribe({ error: (error) => errors.push(error) })
  actor.start()
  expect(errors).toEqual([expect.objectContaining({ name: 'UsageError', code: 'invalid_snapshot' })])
})
