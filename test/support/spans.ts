import { type Context, context, type Span, SpanStatusCode } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
  type SpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import type { Usage } from '../../machines/agent/usage.js'
import type { Telemetry } from '../../src/index.js'
import { otel, type OtelOptions } from '../../src/otel/index.js'

/** Counts started and ended spans. */
class OpenSpans implements SpanProcessor {
  readonly open = new Set<string>()

  onStart(span: Span, _parent: Context): void {
    this.open.add(span.spanContext().spanId)
  }

  onEnd(span: ReadableSpan): void {
    this.open.delete(span.spanContext().spanId)
  }

  forceFlush(): Promise<void> {
    return Promise.resolve()
  }

  shutdown(): Promise<void> {
    return Promise.resolve()
  }
}

/** A tree of spans by name. */
export type Tree = { [name: string]: Tree[] }

/** An SDK whose spans and metrics stay in memory. */
export class Recorded {
  readonly #exporter = new InMemorySpanExporter()
  readonly #open = new OpenSpans()
  readonly #metricExporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  readonly #reader = new PeriodicExportingMetricReader({
    exporter: this.#metricExporter,
    exportIntervalMillis: 2 ** 30,
  })
  readonly provider = new BasicTracerProvider({
    spanProcessors: [this.#open, new SimpleSpanProcessor(this.#exporter)],
  })
  readonly meters = new MeterProvider({ readers: [this.#reader] })

  otel(options: OtelOptions = {}): Telemetry {
    return otel({ tracerProvider: this.provider, meterProvider: this.meters, ...options })
  }

  /** Ended spans, in start order. */
  get spans(): ReadableSpan[] {
    const started = ({ startTime: [seconds, nanos] }: ReadableSpan) => seconds * 1e9 + nanos
    return this.#exporter.getFinishedSpans().toSorted((a, b) => started(a) - started(b))
  }

  /** The number of started spans without an end. */
  get open(): number {
    return this.#open.open.size
  }

  named(start: string): ReadableSpan[] {
    return this.spans.filter(({ name }) => name === start || name.startsWith(`${start} `))
  }

  get tree(): Tree[] {
    const { spans } = this
    const ids = new Set(spans.map((span) => span.spanContext().spanId))
    const below = (id: string | undefined): Tree[] =>
      spans
        .filter(({ parentSpanContext: parent }) =>
          id === undefined ? !ids.has(parent?.spanId ?? '') : parent?.spanId === id,
        )
        .map((span) => ({ [span.name]: below(span.spanContext().spanId) }))
    return below(undefined)
  }

  /** The sum over all spans, as a backend adds it up. */
  get tokens(): Pick<Usage, 'inputTokens' | 'outputTokens' | 'cachedInputTokens' | 'reasoningTokens'> {
    const sum = (key: string): number =>
      this.spans.reduce((all, { attributes }) => all + Number(attributes[`gen_ai.usage.${key}`] ?? 0), 0)
    return {
      inputTokens: sum('input_tokens'),
      outputTokens: sum('output_tokens'),
      cachedInputTokens: sum('cache_read.input_tokens'),
      reasoningTokens: sum('reasoning.output_tokens'),
    }
  }

  /** The metrics by name: points by attributes. */
  async metrics(): Promise<Record<string, { attributes: object; value: number }[]>> {
    this.#metricExporter.reset()
    await this.#reader.forceFlush()
    const found = this.#metricExporter
      .getMetrics()
      .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics))
      .map(({ descriptor, dataPoints }) => [
        descriptor.name,
        dataPoints.map(({ attributes, value }) => ({
          attributes,
          value: typeof value === 'number' ? value : (value.sum ?? 0),
        })),
      ])
    return Object.fromEntries(found) as Record<string, { attributes: object; value: number }[]>
  }

  /** All their text as one string. */
  get words(): string {
    return JSON.stringify(
      this.spans.map(({ name, attributes, events, status, links }) => ({
        name,
        attributes,
        events: events.map((event) => [event.name, event.attributes]),
        status,
        links: links.map((link) => link.attributes),
      })),
    )
  }
}

/** The differences between the spans and the ended run. */
export function unmeasured(recorded: Recorded, { usage }: { usage: Usage }): string[] {
  const [reported, used] = [JSON.stringify(recorded.tokens), JSON.stringify(tokensOf(usage))]
  const open = recorded.open === 0 ? [] : [`${recorded.open} spans are open`]
  return reported === used ? open : [...open, `the spans tell ${reported}, the run ${used}`]
}

export const isFailed = ({ status }: ReadableSpan): boolean => status.code === SpanStatusCode.ERROR

/** A run's token usage in the form of `Recorded.tokens`. */
export function tokensOf({ inputTokens, outputTokens, cachedInputTokens, reasoningTokens }: Usage) {
  return { inputTokens, outputTokens, cachedInputTokens, reasoningTokens }
}

/** For the tests of a file. Without it, the context does not propagate through promises. */
export function withContextManager(): void {
  beforeAll(() => {
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  })
  afterAll(() => {
    context.disable()
  })
}
