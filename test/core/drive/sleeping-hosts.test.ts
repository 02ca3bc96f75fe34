import { SimulatedClock } from 'xstate'
import { createAgent, defineAgents, memoryStore, sleepUntil } from '../../../src/index.js'
import { wakeSleepers } from '../../../src/core/drive/wake-sleepers.js'
import { type DbosLike, dbosSessions } from '../../../src/dbos/index.js'
import { type RestateLike, restateSessions } from '../../../src/restate/index.js'
import type { RestateContext } from '../../../src/restate/restate-sessions.js'
import { ManualModel, call, settled } from '../../support/manual-model.js'
import { tool } from '../../support/tools.js'

// Covers the requests to the servers when a run sleeps. The real servers run in test/hosts.

const start = Date.parse('2026-05-04T06:00:00Z')
const hour = 3_600_000

function program() {
  const clock = new SimulatedClock()
  clock.set(start)
  const store = memoryStore({ now: () => clock.now() })
  const model = new ManualModel()
  const nap = tool('nap', () => sleepUntil(start + hour))
  const sleeper = createAgent({ model, store, tools: [nap], clock })
  return { clock, store, model, agent: sleeper, agents: defineAgents({ sleeper }) }
}

async function untilRequest(model: ManualModel) {
  for (let i = 0; i < 1000 && !model.pending; i += 1) await settled()
  return model.pending
}

const asksToSleep = { toolCalls: [call('a', 'nap')], finishReason: 'tool_calls' as const }

/** A queue that keeps its jobs by id. */
function createQueue() {
  const rows: { workflowID: string; delaySeconds?: number; queued: { session: string } }[] = []
  let work: (queued: never) => Promise<unknown>
  const queue = {
    executorID: 'me',
    registerWorkflow: (input: typeof work) => (work = input),
    registerQueue: () => Promise.resolve({}),
    runStep: <Result>(step: () => Promise<Result>) => step(),
    listWorkflows: () => Promise.resolve([]),
    resumeWorkflow: () => Promise.resolve(),
    enqueueWorkflowWithOptions: (options: { workflowID: string }, queued: { session: string }) => {
      if (!rows.some(({ workflowID }) => workflowID === options.workflowID)) rows.push({ ...options, queued })
      return Promise.resolve()
    },
  }
  return { rows, queue: queue as unknown as DbosLike, run: (i: number) => work(rows[i]?.queued as never) }
}

test('DBOS schedules a sleeping run, again if the time was too early, and wakes it once', async () => {
  const { agents, model, clock } = program()
  const { rows, queue, run } = createQueue()
  // The run does not wait for a person, so patience does not end.
  const own = dbosSessions(queue, agents, { answerTimeoutMs: 1000 })
  await own.enqueue({ session: 's', input: 'Go.' })
  const first = run(0)
  ;(await untilRequest(model))?.answer(asksToSleep)
  expect(await first).toMatchObject({ state: 'PAUSED', wakeMs: hour })
  expect(rows.slice(1)).toMatchObject([{ delaySeconds: 3600, queued: { session: 's' } }])
  clock.increment(hour - 60_000)
  expect(await run(1)).toMatchObject({ state: 'PAUSED', wakeMs: 60_000 })
  expect(rows.slice(2)).toMatchObject([{ delaySeconds: 60 }])
  clock.increment(60_000)
  const last = run(2)
  ;(await untilRequest(model))?.answer({ text: 'Done.' })
  expect(await last).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
  expect(await run(1)).toMatchObject({ state: 'COMPLETED' })
  expect(model.attempts).toHaveLength(2)
})

test('runs that other programs put to sleep are passed to an engine when they are due, then forgotten', async () => {
  const { agents, agent, model, clock, store } = program()
  const run = agent.run('Go.', { session: 's' })
  ;(await untilRequest(model))?.answer(asksToSleep)
  await run.result
  store.timers.set([
    { id: 'wake:stranger', at: start, data: '{"agent":"other"}' },
    { id: 'wake:damaged', at: start, data: '{' },
    { id: 'schedule:daily', at: start, data: '{}' },
  ])
  const woken: string[] = []
  const look = () =>
    wakeSleepers(agents, store, ({ session, at }) => {
      woken.push(`${session} ${at}`)
      return Promise.resolve(null)
    })
  await look()
  expect(woken).toEqual([])
  clock.increment(hour)
  await look()
  await look()
  expect(woken).toEqual([`s ${start + hour}`])
  expect(store.timers.list({ prefix: '', limit: 9 }).map(({ id }) => id)).toEqual([
    'schedule:daily',
    'wake:damaged',
    'wake:stranger',
  ])
})

test('Restate waits for the wake time of a run, or for an earlier message', async () => {
  const { agents, model, clock } = program()
  const handlers: Record<string, (context: RestateContext, options?: object) => Promise<unknown>> = {}
  const waits: { ms: number; over: () => void; wake: () => void }[] = []
  const restate = {
    TerminalError: class extends Error {},
    handlers: {
      object: { exclusive: (_: object, work: never) => work, shared: (_: object, work: never) => work },
    },
    object: (definition: { handlers: typeof handlers }) => Object.assign(handlers, definition.handlers),
  }
  restateSessions(restate as unknown as RestateLike, agents, { answerTimeoutMs: 1000 })
  const context = {
    key: 's',
    run: (_: string, step: () => Promise<unknown>) => step(),
    set: () => undefined,
    clear: () => undefined,
    awakeable: () => ({
      id: 'awake',
      promise: {
        orTimeout: (ms: number) =>
          new Promise((resolve, reject) => {
            const over = () => reject(Object.assign(new Error('late'), { name: 'TimeoutError' }))
            waits.push({ ms, over, wake: () => resolve(null) })
          }),
      },
    }),
  } as unknown as RestateContext
  const until = async (count: number) => {
    for (let i = 0; i < 1000 && waits.length < count; i += 1) await settled()
  }
  const running = handlers['run']?.(context, { input: 'Go.' })
  ;(await untilRequest(model))?.answer(asksToSleep)
  await until(1)
  clock.increment(hour - 60_000)
  // Too early according to another clock.
  waits[0]?.over()
  await until(2)
  expect(waits.map(({ ms }) => ms)).toEqual([hour, 60_000])
  clock.increment(60_000)
  waits[1]?.over()
  ;(await untilRequest(model))?.answer({ text: 'Done.' })
  expect(await running).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
  expect(model.attempts).toHaveLength(2)
})
