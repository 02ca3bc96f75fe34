import { createActor, type Snapshot } from 'xstate'
import { z } from 'zod'
import { createAgent, defineTool } from '../../src/index.js'
import { call, ManualModel, settled } from '../support/manual-model.js'

/** An agent with two tools: one answers at once, the other waits. */
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

test('a run that is restored while it asked the model does nothing until RESUMED, then asks again', async () => {
  const { agent, model } = stage()
  const run = agent.run('Go.')
  await settled()
  const snapshot = stored(run.snapshot())
  run.cancel()

  const actor = createActor(agent.machine, { snapshot, input: 'not used again' }).start()
  await settled()
  expect(model.attempts).toHaveLength(1)
  actor.send({ type: 'RESUMED' })
  await settled()
  expect(model.attempts).toHaveLength(2)
  model.pending?.answer({ text: 'Done.' })
  await settled()
  expect(actor.getSnapshot().output).toMatchObject({ state: 'COMPLETED', output: 'Done.', steps: 1 })
})

test('a batch that is restored runs only the calls that have no result yet', async () => {
  const { agent, model, ran } = stage()
  const run = agent.run('Go.')
  await settled()
  model.pending?.answer({ toolCalls: [call('a', 'quick'), call('b', 'slow')] })
  await settled()
  const snapshot = stored(run.snapshot())
  run.cancel()
  expect(ran).toEqual(['quick', 'slow'])

  const actor = createActor(agent.machine, { snapshot, input: 'not used again' }).start()
  actor.send({ type: 'RESUMED' })
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

test('a call that may not run twice reads that its outcome is unknown', async () => {
  const { agent, model, ran } = stage()
  const run = agent.run('Go.')
  await settled()
  model.pending?.answer({ toolCalls: [call('a', 'once')] })
  await settled()
  const snapshot = stored(run.snapshot())
  run.cancel()
  expect(ran).toEqual(['once'])

  const actor = createActor(agent.machine, { snapshot, input: 'not used again' }).start()
  actor.send({ type: 'RESUMED' })
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

test('a run that is restored too late is out of time', async () => {
  const model = new ManualModel()
  const agent = createAgent({ model, limits: { timeoutMs: 1000 } })
  const run = agent.run('Go.')
  await settled()
  const snapshot = stored(run.snapshot())
  run.cancel()
  const actor = createActor(agent.machine, { snapshot, input: 'not used again' }).start()
  actor.send({ type: 'RESUMED', now: Date.now() + 2000 })
  expect(actor.getSnapshot().output).toMatchObject({ state: 'TIMED_OUT', reason: 'timeout' })
})
