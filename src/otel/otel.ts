import {
  type MeterProvider,
  trace,
  type TracerProvider,
  type Attributes,
  type Context,
  context,
  createContextKey,
  type Span,
  SpanKind,
  SpanStatusCode,
  isSpanContextValid,
  type SpanContext,
} from '@opentelemetry/api'
import {
  checkOptions,
  choiceRule,
  flagRule,
  methodRule,
  type OptionRules,
  textRule,
} from '../core/config/check-options.js'
import { checkBudgetList, type SharedBudget } from '../core/budgets/shared-budget.js'
import type {
  Telemetry,
  TelemetryRunInfo,
  TelemetryStepInfo,
  RunTelemetry,
} from '../core/telemetry/telemetry.js'
import { createMetricsLookup, namesBySemconv, type Semconv, type Metrics } from './otel-metrics.js'
import type { EmittedEvent } from '../../machines/agent/announcements.js'
import { failedStates, isRestState } from '../../machines/agent/run-result.js'
import { forEachThenThrow, type OtelKit, readMonotonicMs, type SpanPlace } from './otel-kit.js'
import { createRequestSpans } from './request-spans.js'
import {
  createStretchEnd,
  listQuestionEvents,
  toSpanEvent,
  createStretchStart,
  createStepSpans,
} from './step-spans.js'

export interface OtelOptions {
  /** The attribute `gen_ai.agent.name`, also used in span names. A sub-agent has the name of its tool. None by default. */
  agentName?: string
  /**
   * Whether spans contain text from people, models and tools. Secrets and content withheld by shields are always omitted.
   * At most 32,000 characters per attribute. Default: false, unless OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT
   * is SPAN_ONLY, SPAN_AND_EVENT or true.
   */
  captureContent?: boolean
  /** The version of the GenAI conventions for spans and metrics. Defaults to `latest`. */
  semconv?: Semconv
  /** Shared budgets whose spent, reserved and allowed amounts are gauges, from the first run on. None by default. */
  budgets?: readonly SharedBudget[]
  /** Defaults to the provider registered with `@opentelemetry/api`. */
  tracerProvider?: TracerProvider
  /** Defaults to the provider registered with `@opentelemetry/api`. */
  meterProvider?: MeterProvider
}

const providerRule = (method: string) =>
  methodRule([method], `an object with ${method}(), like the providers of the OpenTelemetry SDK`)
const optionRules: OptionRules<OtelOptions> = {
  agentName: textRule,
  captureContent: flagRule,
  semconv: choiceRule(...Object.keys(namesBySemconv)),
  budgets: null,
  tracerProvider: providerRule('getTracer'),
  meterProvider: providerRule('getMeter'),
}
const captureVariable = 'OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT'

/**
 * OpenTelemetry spans and metrics for an agent's runs, following the GenAI conventions. Register an SDK as usual. Runs
 * continue unchanged without an SDK, or if the SDK fails. See docs/telemetry.md.
 *
 * @example
 * import { otel } from 'statewright/otel'
 *
 * const agent = createAgent({ model, tools: [add], telemetry: otel({ agentName: 'analyst' }) })
 * @throws {UsageError} `invalid_option`
 */
export function otel(options: OtelOptions = {}): Telemetry {
  const {
    agentName,
    semconv = 'latest',
    budgets,
    tracerProvider,
    meterProvider,
  } = checkOptions('otel(options)', options, optionRules)
  if (budgets !== undefined) checkBudgetList(budgets, 'budgets')
  const names = namesBySemconv[semconv]
  const kit = {
    tracer: (tracerProvider ?? trace).getTracer('statewright'),
    metrics: createMetricsLookup(meterProvider, names, budgets ?? []),
    names,
    agentName,
    captureContent: options.captureContent ?? isCaptureEnabled(),
  }
  return { begin: (run) => new RunSpans(kit, run) }
}

function isCaptureEnabled(): boolean {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } }
  const setting = process?.env?.[captureVariable]?.toUpperCase() ?? ''
  return ['SPAN_ONLY', 'SPAN_AND_EVENT', 'TRUE'].includes(setting)
}

/** Deltas and progress are too frequent for spans. */
const untold: ReadonlySet<string> = new Set([
  'stream_chunk',
  'tool_call_delta',
  'tool_progress',
  'child_event',
])

/** One stretch of a run, from the start of the run or an answer until the run is idle. */
interface Stretch extends SpanPlace {
  readonly span: Span
  readonly startedAt: number
  requests: number
  calls: number
}

const runKey = createContextKey('statewright.run')

class RunSpans implements RunTelemetry {
  readonly #kit: OtelKit
  readonly #run: TelemetryRunInfo
  readonly #metrics: Metrics | null
  readonly #requests: ReturnType<typeof createRequestSpans>
  readonly #works: ReturnType<typeof createStepSpans>
  readonly #name: string | undefined
  /** The context that started or resumed the run. */
  readonly #home: Context
  #stretch: Stretch | null = null
  /** The `traceparent` of the previous stretch. */
  #last: string | null

  constructor(otelKit: OtelKit, run: TelemetryRunInfo) {
    const kit = run.parent?.isUncleared ? { ...otelKit, captureContent: false } : otelKit
    this.#kit = kit
    this.#run = run
    this.#metrics = kit.metrics()
    this.#requests = createRequestSpans(kit, this.#metrics)
    this.#works = createStepSpans(kit, this.#metrics, run)
    this.#name = run.parent?.name ?? kit.agentName
    this.#home = context.active()
    this.#last = run.link
  }

  link(): string | null {
    this.#stretch ??= this.#begin()
    return formatLink(this.#stretch.span.spanContext())
  }

  around<T>(step: TelemetryStepInfo, work: () => T): T {
    const place = this.#findContext(step)
    return place === undefined ? work() : context.with(place, work)
  }

  event(announcement: EmittedEvent): void {
    const { type } = announcement
    if (untold.has(type)) return
    if (type === 'usage') {
      if (announcement.callId === undefined) this.#requests.pay(announcement.step)
    } else if (type === 'waiting_for_slot') this.#requests.addWait(announcement)
    else if (type === 'step_completed') {
      if (announcement.stepType === 'inference') this.#requests.complete(announcement)
      else if (announcement.stepType === 'hosted') this.#requests.addHostedTool(announcement)
      else this.#works.complete(announcement)
    } else {
      // The usage of an answer is reported with its effects, which come before these events.
      if (type === 'step_started' || type === 'retry') this.#requests.settleCompleted()
      if (type !== 'step_started') this.#recordEvent(announcement)
      else if (this.#stretch) {
        this.#works.start(announcement, this.#stretch)
        if (announcement.stepType === 'tool_execution') this.#stretch.calls += 1
      }
    }
  }

  end(): void {
    this.#end(null, null)
  }

  getContextBelow(callId: string): Context | undefined {
    return this.#works.findCallContext(callId) ?? this.#stretch?.context
  }

  #findContext(step: TelemetryStepInfo): Context | undefined {
    if (step.type !== 'inference') return this.#works.findContext(step) ?? this.#stretch?.context
    const stretch = this.#stretch
    if (stretch === null) return undefined
    return this.#requests.getContext(step, stretch, () => {
      stretch.requests += 1
    })
  }

  #recordEvent(announcement: EmittedEvent): void {
    const { type } = announcement
    const event = toSpanEvent(announcement, this.#kit.captureContent)
    if (event) this.#stretch?.span.addEvent(event.name, event.attributes)
    if (type === 'guardrail') {
      const { guard, action } = announcement
      this.#metrics?.guardrails.add(1, { guard, action })
    } else if (type === 'approval_decided') {
      const { outcome, waitedMs } = announcement
      this.#metrics?.approvals.add(1, { outcome })
      this.#metrics?.approvalWait.record(waitedMs / 1000, { outcome })
    } else if (type === 'policy_decided') {
      const { policy, decision, shadow = false } = announcement
      this.#metrics?.policyDecisions.add(1, { policy, decision, shadow })
    } else if (type === 'run_ended') {
      const { state, reason } = announcement
      this.#end(state, reason)
      this.#metrics?.runs.add(1, { state, reason })
    } else if (type === 'state_changed' && isRestState(announcement.to)) {
      // The questions are announced after the end of the span.
      if (announcement.reason === 'approval') {
        const questions = listQuestionEvents(this.#run.context(), this.#kit.captureContent)
        for (const { name, attributes } of questions) this.#stretch?.span.addEvent(name, attributes)
      }
      this.#end(announcement.to, announcement.reason)
    }
  }

  #begin(): Stretch {
    const { parent: above } = this.#run
    const runs = (above ? (above.run.parts ?? [above.run]) : []).filter((run) => run instanceof RunSpans)
    const own = runs.find((run) => run.#kit.tracer === this.#kit.tracer) ?? runs[0]
    const parent = (above && own?.getContextBelow(above.callId)) ?? this.#findParent()
    const { name, attributes } = createStretchStart(this.#run, this.#name)
    const before = parseLink(this.#last)
    const span = this.#kit.tracer.startSpan(
      name,
      { kind: SpanKind.INTERNAL, attributes, ...(before && { links: [{ context: before }] }) },
      parent,
    )
    return {
      span,
      context: trace.setSpan(parent, span).setValue(runKey, this),
      agentName: this.#name,
      sessionId: this.#run.sessionId,
      startedAt: readMonotonicMs(),
      requests: 0,
      calls: 0,
    }
  }

  /** The app's span that was active when the answer was sent, or else when the run started. */
  #findParent(): Context {
    const active = context.active()
    return active.getValue(runKey) === this ? this.#home : active
  }

  #end(state: string | null, reason: string | null): void {
    const stretch = this.#stretch
    if (stretch === null) return
    this.#stretch = null
    const { span, startedAt, requests, calls } = stretch
    const error = state !== null && failedStates.has(state) ? (reason ?? state) : undefined
    const counted: Attributes = { 'gen_ai.request.model': this.#run.model.model }
    if (this.#name !== undefined) counted['gen_ai.agent.name'] = this.#name
    if (error !== undefined) {
      counted['error.type'] = error
      span.setStatus({ code: SpanStatusCode.ERROR })
      span.setAttribute('error.type', error)
    }
    this.#last = formatLink(span.spanContext()) ?? this.#last
    const acts = [
      () => this.#requests.settle(),
      () => this.#works.endAll(),
      () => void span.setAttributes(createStretchEnd(this.#run.context(), state, reason)),
      () => span.end(),
      () => {
        const metrics = this.#metrics?.agent
        metrics?.duration.record((readMonotonicMs() - startedAt) / 1000, counted)
        metrics?.requests.record(requests, counted)
        metrics?.calls.record(calls, counted)
      },
    ]
    forEachThenThrow(acts, (act) => act())
  }
}

const traceparentPattern = /^00-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})$/

/** A span as a W3C `traceparent`, or null if it is not recorded. */
function formatLink(span: SpanContext): string | null {
  if (!isSpanContextValid(span)) return null
  const flags = (span.traceFlags & 0xff).toString(16).padStart(2, '0')
  return `00-${span.traceId}-${span.spanId}-${flags}`
}

/** The span of a `traceparent`, or null for any other text. */
function parseLink(link: string | null): SpanContext | null {
  const [, traceId, spanId, flags] = (link !== null && traceparentPattern.exec(link)) || []
  if (traceId === undefined || spanId === undefined || flags === undefined) return null
  const span = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true }
  return isSpanContextValid(span) ? span : null
}
