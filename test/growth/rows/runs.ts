import { otel } from '../../../src/otel/index.js'
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base'
import { createCallStream } from '../../../src/core/effects/call-stream.js'
import type { AnswerStream } from '../../../src/core/live/answer-stream.js'
import { toAGUI } from '../../../src/agui/index.js'
import { toUIMessageStreamResponse } from '../../../src/ui/index.js'
import { durable } from '../../../src/durable/index.js'
import { createWaker, runAll, sendAll } from '../../../src/fleet/index.js'
import { defineAgents, memoryStore, secretsShield } from '../../../src/index.js'
import type { JsonObject } from '../../../machines/agent/json.js'
import { createOpenCalls } from '../../../src/mcp/client/asking-call.js'
import { tallyMachine } from '../../durable/tally.js'
import { type Row, row } from '../measure.js'
import { agentOf, calling, scripted, stepping, streaming } from '../scripted.js'

const telemetry = otel({ captureContent: true, tracerProvider: new BasicTracerProvider() })

const looking = { toolInput: [secretsShield()], toolOutput: [secretsShield()] }

/** Calls with a long id and with a long name, and a sub-agent's call under a long id. */
const longCall = (text: string) => {
  const createCall = (id: string, name: string) => ({
    id,
    type: 'function' as const,
    function: { name, arguments: '{}' },
  })
  const toolCalls = [createCall(text, 'look'), createCall('b', text), createCall(text, 'look')]
  return scripted((request) => (request > 1 ? { text: 'Done.' } : { toolCalls, finishReason: 'tool_calls' }))
}

const stepsOf = { from: 50, atMost: 800, prepare: (n: number) => n }

export const runRows: readonly Row[] = [
  row({
    name: 'a run of many steps',
    covers: ['agent run', 'statewright createAgent'],
    ...stepsOf,
    run: (n) => agentOf(stepping(n)).run('Look.').result,
  }),
  row({
    name: 'a stored run of many steps',
    covers: ['store append'],
    ...stepsOf,
    run: (n) => agentOf(stepping(n), { store: memoryStore() }).run('Look.').result,
  }),
  row({
    name: 'a run of many steps whose content is told to OpenTelemetry',
    covers: ['statewright/otel otel'],
    ...stepsOf,
    run: (n) => agentOf(stepping(n), { telemetry }).run('Look.').result,
  }),
  row({
    name: 'a batch of many items',
    covers: ['statewright/fleet runAll'],
    from: 50,
    atMost: 1_600,
    prepare: (n) => Array.from({ length: n }, (_, i) => ({ id: `i${i}`, input: `Question ${i}` })),
    run: async (items) => {
      const agent = agentOf(streaming('Yes.'), { store: memoryStore() })
      for await (const { result } of runAll(agent, items, { id: 'b' })) result?.output.trim()
    },
  }),
  row({
    name: 'a message for many sessions',
    covers: ['statewright/fleet sendAll'],
    from: 50,
    atMost: 1_600,
    prepare: async (n) => {
      const store = memoryStore()
      const agent = agentOf(streaming('Yes.'), { store, interactive: true })
      await Promise.all(
        Array.from({ length: n }, (_, i) => agent.run('Hello.', { session: `a:${i}` }).result),
      )
      return store
    },
    run: async (store) => sendAll(store, { prefix: 'a' }, { type: 'steer', text: 'Be brief.' }),
  }),
  row({
    name: 'many sleeping sessions that are due',
    covers: ['statewright/fleet createWaker'],
    from: 50,
    atMost: 1_600,
    prepare: (n) => Array.from({ length: n }, (_, i) => ({ id: `wake:${i}`, at: 0, data: '{}' })),
    run: async (alarms) => {
      const store = memoryStore()
      store.timers.set(alarms)
      const agents = defineAgents({ a: agentOf(streaming('Yes.'), { store }) })
      let left = alarms.length
      await new Promise<void>((resolve) => {
        const waker = createWaker(agents, {
          pollMs: 1,
          concurrency: 1e6,
          run: async () => {
            left -= 1
            if (left === 0) resolve(waker.stop())
          },
        })
        waker.start()
      })
    },
  }),
  row({
    name: 'a batch of many calls',
    covers: [],
    from: 100,
    atMost: 1_600,
    prepare: (n) => n,
    run: (n) => agentOf(calling(n)).run('Look.').result,
  }),
  row({
    name: 'a stored batch of many calls',
    covers: [],
    from: 100,
    atMost: 1_600,
    prepare: (n) => n,
    run: (n) => agentOf(calling(n), { store: memoryStore() }).run('Look.').result,
  }),
  ...['/', 'a/', 'é', ' ', "'"].map((piece) =>
    row({
      name: `a call whose id and name are long, of ${JSON.stringify(piece)}`,
      covers: [],
      from: 1_000,
      atMost: 64_000,
      prepare: (n) => `c${piece.repeat(n)}`,
      run: (text) => agentOf(longCall(text), { store: memoryStore(), shields: looking }).run('Look.').result,
    }),
  ),
  row({
    name: 'a run that reads many messages of its inbox',
    covers: ['inbox remove'],
    from: 25,
    atMost: 800,
    prepare: async (n) => {
      const store = memoryStore()
      const agent = agentOf(streaming('Yes.'), { store, interactive: true })
      await agent.run('Hello.', { session: 's' }).result
      for (let i = 0; i < n; i += 1) store.inbox.put('s', JSON.stringify({ type: 'STEER', text: `${i}` }))
      return store
    },
    run: async (store) => {
      const agent = agentOf(streaming('Yes.'), { store, interactive: true })
      const fork = await agent.fork('s')
      for (const { text } of store.inbox.read('s')) store.inbox.put(fork, text)
      const run = await agent.resume(fork)
      await run.result
      run.cancel()
      await run.result
      await agent.deleteSession(fork)
    },
  }),
  row({
    name: 'a long id and name of a call on pages',
    covers: [],
    from: 1_000,
    atMost: 64_000,
    prepare: (n) => `c${'a/'.repeat(n)}`,
    run: async (text) => {
      for await (const _ of toAGUI(agentOf(longCall(text), {}).run('Look.'))) continue
      await toUIMessageStreamResponse(agentOf(longCall(text), {}).run('Look.')).text()
    },
  }),
  row({
    name: 'a batch of many calls that shields look at',
    covers: [],
    from: 100,
    atMost: 1_600,
    prepare: (n) => n,
    run: (n) => agentOf(calling(n), { shields: looking }).run('Look.').result,
  }),
  row({
    name: 'a streamed answer',
    covers: [],
    from: 20_000,
    atMost: 320_000,
    prepare: (n) => 'word '.repeat(n / 5),
    run: (text) => agentOf(streaming(text)).run('Tell.').result,
  }),
  row({
    name: 'a streamed object whose parts are read',
    covers: [],
    from: 20_000,
    atMost: 320_000,
    prepare: (n) => JSON.stringify({ words: Array.from({ length: n / 20 }, (_, i) => `word ${i}`) }),
    run: async (text) => {
      const output = { type: 'object', properties: { words: { type: 'array' } } } as const
      const run = agentOf(streaming(text), { output: { schema: output, mode: 'response_format' } }).run(
        'Tell.',
      )
      run.object$.subscribe()
      await run.result
    },
  }),
  row({
    name: 'a streamed answer that shields look at',
    covers: [],
    from: 5_000,
    atMost: 80_000,
    prepare: (n) => 'word '.repeat(n / 5),
    run: (text) => agentOf(streaming(text), { shields: { output: [secretsShield()] } }).run('Tell.').result,
  }),
  row({
    name: 'blanks that a model writes before the arguments of a call',
    covers: [],
    from: 20_000,
    prepare: (n) => n,
    run: (n) => {
      const calls = createCallStream({ writeCall: () => undefined } as unknown as AnswerStream, [])
      calls.write({ index: 0, id: 'c', name: 'look', arguments: `{}${' '.repeat(n)}x` })
      calls.write({ index: 1, id: 'd', name: 'look', arguments: '' })
      for (let at = 0; at < n; at += 10)
        calls.write({ index: 1, id: '', name: '', arguments: ' '.repeat(10) })
    },
  }),
  row({
    name: 'calls of an MCP server that ask, and whose ends no run takes',
    covers: [],
    from: 100,
    atMost: 3_200,
    prepare: (n) => n,
    run: async (n) => {
      const calls = createOpenCalls()
      for (let i = 0; i < n; i += 1) {
        const { promise, resolve } = defer<JsonObject>()
        const options = {
          make: () => promise,
          timeoutMs: 0,
          server: 'x',
          known: [],
        }
        const call = calls.begin(`call ${i}`, options)
        void calls.ask({ i })
        call.answer({ action: 'decline' })
        resolve({})
        await promise
      }
    },
  }),
  row({
    name: 'a durable machine: many events of one session',
    covers: ['statewright/durable durable'],
    from: 50,
    atMost: 800,
    prepare: (n) => n,
    run: async (n) => {
      const tallies = durable(tallyMachine, { store: memoryStore() })
      await tallies.start('t')
      for (let i = 1; i <= n; i += 1) await tallies.send('t', { type: 'COUNT', from: 'a', n: i })
      return tallies.settled('t')
    },
  }),
]

/** A substitute for Promise.withResolvers, which Node 20 lacks. */
function defer<Value>(): { promise: Promise<Value>; resolve: (value: Value) => void } {
  let resolve: (value: Value) => void = () => undefined
  const promise = new Promise<Value>((settle) => {
    resolve = settle
  })
  return { promise, resolve }
}
