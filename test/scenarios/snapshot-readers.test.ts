import { createActor, setup } from 'xstate'
import { z } from 'zod'
import { createAgent, defineTool, outputOf, pendingCalls, usageOf } from '../../src/index.js'
import { call, ManualModel, settled } from '../support/manual-model.js'

const deploy = defineTool({
  name: 'deploy',
  description: 'Deploys a version.',
  input: z.object({ version: z.string() }),
  needsApproval: true,
  execute: ({ version }) => `Version ${version} is live.`,
})

/** As a disk would return it. */
const stored = (snapshot: object): object => JSON.parse(JSON.stringify(snapshot)) as object

test('a parent can always read the questions, the result and the usage of its child', async () => {
  const model = new ManualModel()
  const agent = createAgent({ model, tools: [deploy], prices: null })
  const desk = setup({ actors: { agent: agent.machine } }).createMachine({
    invoke: { id: 'agent', src: 'agent', input: 'Deploy version 7.' },
  })
  const actor = createActor(desk).start()
  const child = actor.getSnapshot().children['agent']
  const read = () => child?.getSnapshot() as object
  await settled()
  expect(pendingCalls(read())).toEqual([])
  expect(outputOf(read())).toMatchObject({ state: 'RUNNING', output: '', steps: 0, resumable: false })
  expect(usageOf(read())).toMatchObject({ totalTokens: 0 })

  model.pending?.answer({ toolCalls: [call('a', 'deploy', { version: '7' })] })
  await settled()
  const saved = stored(actor.getPersistedSnapshot()) as { children: { agent: { snapshot: object } } }
  const waiting = [read(), stored(read()), saved.children.agent.snapshot]
  for (const snapshot of waiting) {
    expect(pendingCalls(snapshot)).toEqual([
      expect.objectContaining({
        callId: 'a',
        name: 'deploy',
        needs: 'approval',
        arguments: '{"version":"7"}',
      }),
    ])
    expect(outputOf(snapshot)).toMatchObject({
      state: 'WAITING_FOR_INPUT',
      reason: 'approval',
      pending: [{ callId: 'a' }],
    })
    expect(usageOf(snapshot)).toEqual((outputOf(snapshot) as { usage: object }).usage)
    expect(usageOf(snapshot).totalTokens).toBeGreaterThan(0)
  }

  const [question] = pendingCalls(read())
  if (!question) throw new Error('Nothing is asked.')
  const { callId, fingerprint, messageId } = question
  child?.send({ type: 'APPROVE', callId, fingerprint, ...(messageId !== undefined && { messageId }) })
  await settled()
  model.pending?.answer({ text: 'Done.' })
  await settled()
  const done = child?.getSnapshot()
  expect(outputOf(read())).toEqual(done?.output)
  expect(outputOf(stored(read()))).toEqual(done?.output)
  expect(pendingCalls(read())).toEqual([])
})

test('keys that a snapshot lacks have their defaults', async () => {
  const agent = createAgent({ model: new ManualModel(), prices: null })
  const actor = createActor(agent.machine, { input: 'Go.' }).start()
  await settled()
  const { context, ...rest } = stored(actor.getPersistedSnapshot()) as { context: Record<string, unknown> }
  const { unemittedStep: _step, pendingAnswer: _answer, output: _output, ...partial } = context
  expect(outputOf({ ...rest, context: partial })).toMatchObject({ state: 'RUNNING', output: '' })
})

test.each([
  ['nothing', undefined],
  ['null', null],
  ['a string', 'RUNNING'],
  ['the snapshot of another machine', { status: 'active', value: 'idle', context: { count: 1 } }],
])('%s is refused with a remedy', (_, input) => {
  for (const read of [pendingCalls, outputOf, usageOf])
    expect(() => read(input as never)).toThrow(
      expect.objectContaining({ name: 'UsageError', code: 'invalid_snapshot' }) as Error,
    )
})

test('a result that the app changes leaves the snapshot unchanged', async () => {
  const model = new ManualModel()
  const run = createAgent({ model, prices: null }).run('Go.')
  await settled()
  model.pending?.answer({ text: 'Done.' })
  const result = await run.result
  Object.assign(result, { output: 'Changed.', note: 1 })
  expect(run.snapshot()).toMatchObject({ output: { output: 'Done.' } })
  expect(run.snapshot()).not.toHaveProperty('output.note')
})
