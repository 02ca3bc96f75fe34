/**
 * Prints the spans of a run with a retry, a tool with its own span, and an approval after which a new span starts.
 *
 *   node examples/otel.mjs
 *
 * Needs @opentelemetry/api, @opentelemetry/sdk-trace-base and @opentelemetry/context-async-hooks. In your own program,
 * @opentelemetry/sdk-node registers all of them.
 */
import { pathToFileURL } from 'node:url'
import { context, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { BasicTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { createAgent, defineTool, openaiChat } from 'statewright'
import { otel } from 'statewright/otel'
import { startRehearsal } from 'statewright/rehearsal'

/** Collects spans until they are printed. */
class Kept {
  spans = []

  export(spans, done) {
    this.spans.push(...spans)
    done({ code: 0 })
  }

  async shutdown() {
    // There is nothing to close.
  }

  /** Formats each span as a line below its parent. */
  lines(parent, indent = '') {
    const ids = new Set(this.spans.map((span) => span.spanContext().spanId))
    const belongs = ({ parentSpanContext: above }) =>
      parent === undefined ? !ids.has(above?.spanId) : above?.spanId === parent
    const below = this.spans.filter(belongs).toSorted((a, b) => nanos(a) - nanos(b))
    return below.flatMap((span) => [
      indent + described(span),
      ...this.lines(span.spanContext().spanId, `${indent}  `),
    ])
  }
}

const nanos = ({ startTime: [seconds, rest] }) => seconds * 1e9 + rest

function described({ name, attributes, links, events }) {
  const tokens = attributes['gen_ai.usage.input_tokens']
  const lines = [
    tokens === undefined ? '' : `${tokens} + ${attributes['gen_ai.usage.output_tokens']} tokens`,
    attributes['statewright.outcome.state'] ?? '',
    attributes['error.type'] ?? '',
    ...events.flatMap((event) => event.attributes['statewright.approval.outcome'] ?? []),
    links.length > 0 ? 'linked to the stretch before' : '',
  ]
  return [name, ...lines.filter(Boolean)].join(' · ')
}

const turns = [
  { status: 503, error: { message: 'Overloaded.' }, retryAfterMs: 1 },
  { toolCalls: [{ name: 'look_up', arguments: { customer: 'Ann' } }], usage: { input: 80, output: 12 } },
  { toolCalls: [{ name: 'refund', arguments: { customer: 'Ann' } }], usage: { input: 120, output: 14 } },
  { text: 'Ann has been refunded.', usage: { input: 150, output: 9 } },
]

/** Runs the agent, and returns one line for each span. */
export async function spansOfARun() {
  const kept = new Kept()
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(kept)] })
  trace.setGlobalTracerProvider(provider)
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  const rehearsal = await startRehearsal({ scenario: { turns } })
  const input = { type: 'object', properties: { customer: { type: 'string' } }, required: ['customer'] }
  const database = trace.getTracer('database')
  try {
    const agent = createAgent({
      model: openaiChat({ model: 'gpt-5-mini', provider: 'openai', baseURL: rehearsal.url, apiKey: 'none' }),
      tools: [
        defineTool({
          name: 'look_up',
          description: 'Lists the orders of a customer.',
          input,
          execute: () => database.startActiveSpan('SELECT orders', (span) => (span.end(), '1 umbrella')),
        }),
        defineTool({
          name: 'refund',
          description: 'Refunds a customer.',
          input,
          needsApproval: true,
          execute: () => 'Done.',
        }),
      ],
      telemetry: otel({ agentName: 'support' }),
    })
    const run = agent.run('Ann wants a refund.')
    const { pending = [] } = await run.result
    for (const call of pending) run.approve(call)
    await run.result
    return kept.lines()
  } finally {
    await rehearsal.close()
    trace.disable()
    context.disable()
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  console.log((await spansOfARun()).join('\n'))
}
