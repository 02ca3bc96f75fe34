// The cost of an instrumented step: `otel-worker.mjs CASE` with CASE as JSON, in a separate process. Prints one JSON line. Runs the
// loop of machine-worker.mjs with an SDK whose exporter does nothing, or without an SDK.
import { context, metrics, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics'
import { BasicTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { z } from 'zod'
import { createAgent, defineTool } from '../dist/src/index.js'
import { otel } from '../dist/src/otel/index.js'
import { modelOf, refuse, resultOf, usage } from './loop.mjs'

const { impl, steps, runs, warmup } = JSON.parse(process.argv[2])

class Silent extends MetricReader {
  async onForceFlush() {
    // No reader.
  }

  async onShutdown() {
    // No open span.
  }
}

let exported = 0
const nowhere = {
  export: (spans, done) => {
    exported += spans.length
    done({ code: 0 })
  },
  shutdown: async () => undefined,
}

if (impl !== 'absent') {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  trace.setGlobalTracerProvider(
    new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(nowhere)] }),
  )
}
if (impl === 'spans and metrics')
  metrics.setGlobalMeterProvider(new MeterProvider({ readers: [new Silent()] }))

const read = defineTool({
  name: 'read',
  description: 'Reads a file.',
  input: z.object({ path: z.string(), note: z.string() }),
  execute: async ({ path }) => resultOf(path),
})

const agent = createAgent({
  model: modelOf(steps),
  tools: [read],
  limits: { maxSteps: 1000 },
  ...(impl.startsWith('spans') && { telemetry: otel({ agentName: 'bench' }) }),
})

async function run() {
  const { state, usage: used } = await agent.run('Go.').result
  if (state !== 'COMPLETED' || used.totalTokens !== steps * usage.totalTokens)
    refuse(`${state} ${used.totalTokens}`)
}

/** Models a server with instrumented requests: there is an active span, and every promise propagates it. */
const within = trace.setSpanContext(context.active(), {
  traceId: 'a'.repeat(32),
  spanId: 'b'.repeat(16),
  traceFlags: 1,
})
await context.with(within, async () => {
  for (let i = 0; i < warmup; i++) await run()
})
exported = 0
const before = process.cpuUsage()
await context.with(within, async () => {
  for (let i = 0; i < runs; i++) await run()
})
const { user, system } = process.cpuUsage(before)
// One span per run, one per model request, and one per call in every step except the last.
const expected = impl.startsWith('spans') ? runs * 2 * steps : 0
if (exported !== expected) refuse(`${exported} spans`)
console.log(JSON.stringify({ cpu: (user + system) / (runs * steps) }))
process.exit(0)
