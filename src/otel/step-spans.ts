import { type Attributes, type Context, type Span, SpanKind, trace } from '@opentelemetry/api'
import type { StepCompleted, StepStarted } from '../../machines/agent/announcements.js'
import type { TelemetryRunInfo, TelemetryStepInfo } from '../core/telemetry/telemetry.js'
import { limitContent } from './span-content.js'
import { recordFailure } from './record-failure.js'
import { forEachThenThrow, type OtelKit, readMonotonicMs, type SpanPlace } from './otel-kit.js'
import type { Metrics } from './otel-metrics.js'

type StartedStep = Exclude<StepStarted, { stepType: 'inference' | 'hosted' }>
type OtherStep = Exclude<TelemetryStepInfo, { type: 'inference' }>

interface OpenStep {
  readonly span: Span
  readonly context: Context
  readonly startedAt: number
}

/** The spans of one run's calls, shields and searches: each lasts as long as its step. */
export class StepSpans {
  readonly #kit: OtelKit
  readonly #metrics: Metrics | null
  readonly #run: TelemetryRunInfo
  #open: Map<string, OpenStep> | undefined

  constructor(kit: OtelKit, metrics: Metrics | null, run: TelemetryRunInfo) {
    this.#kit = kit
    this.#metrics = metrics
    this.#run = run
  }

  start(step: StepStarted, place: SpanPlace): void {
    if (step.stepType === 'inference' || step.stepType === 'hosted') return
    const { name, attributes } = this.#describeStep(step, place)
    const span = this.#kit.tracer.startSpan(name, { kind: SpanKind.INTERNAL, attributes }, place.context)
    const open = (this.#open ??= new Map())
    open.set(getStepKey(step), {
      span,
      context: trace.setSpan(place.context, span),
      startedAt: readMonotonicMs(),
    })
  }

  findContext(step: OtherStep): Context | undefined {
    const work = this.#open?.get(getMeasuredStepKey(step))
    if (work && step.type === 'tool_execution' && step.description !== '')
      work.span.setAttribute('gen_ai.tool.description', step.description)
    return work?.context
  }

  findCallContext(callId: string): Context | undefined {
    return this.#open?.get(`tool ${callId}`)?.context
  }

  complete(step: StepCompleted): void {
    if (step.stepType === 'inference' || step.stepType === 'hosted') return
    const key = getStepKey(step)
    const work = this.#open?.get(key)
    if (work === undefined) return
    this.#open?.delete(key)
    const { span, startedAt } = work
    const { outcome, error } = step
    const ended: Attributes = outcome === 'cancelled' ? { 'statewright.cancelled': true } : {}
    let failure = error?.code
    if (step.stepType === 'tool_execution') {
      const { toolCall, toolResponse } = step.payload
      if (toolResponse) ended['statewright.tool.status'] = toolResponse.status
      if (toolResponse?.errorKind) ended['statewright.tool.error_kind'] = toolResponse.errorKind
      if (toolResponse && toolResponse.status !== 'ok') failure ??= toolResponse.status
      if (this.#kit.captureContent) {
        ended['gen_ai.tool.call.arguments'] = limitContent(toolCall.function.arguments)
        const content = toolResponse?.content
        if (typeof content === 'string') ended['gen_ai.tool.call.result'] = limitContent(content)
      }
    } else if (step.stepType === 'shield_call') {
      const { violation } = step.payload
      ended['statewright.shield.action'] = violation?.action ?? 'allow'
      if (violation) ended['statewright.shield.names'] = violation.shields
    } else ended['statewright.retrieval.documents'] = step.payload.retrievedContext?.length ?? 0
    if (failure !== undefined) {
      ended['error.type'] = failure
      recordFailure(span, error, this.#kit.captureContent && !this.#isWithheld)
    }
    span.setAttributes(ended)
    span.end()
    if (step.stepType !== 'tool_execution' || this.#metrics === null) return
    const name = getToolName(step.name, this.#run.context().tools)
    const counted: Attributes = { 'gen_ai.tool.name': name, 'gen_ai.tool.type': 'function' }
    if (failure !== undefined) counted['error.type'] = failure
    this.#metrics.tool((readMonotonicMs() - startedAt) / 1000, counted)
  }

  /** Whether shields of this run, or of one above it, look at what its tools bring. */
  get #isWithheld(): boolean {
    return this.#run.parent?.isUncleared === true || this.#run.context().features.resultShields
  }

  /** Ends the steps whose end is no longer reported. */
  endAll(): void {
    const open = [...(this.#open?.values() ?? [])]
    this.#open = undefined
    forEachThenThrow(open, ({ span }) => {
      span.setAttribute('statewright.cancelled', true)
      span.end()
    })
  }

  #describeStep(
    step: StartedStep,
    { agentName, sessionId }: SpanPlace,
  ): { name: string; attributes: Attributes } {
    const attributes: Attributes = { 'gen_ai.conversation.id': sessionId }
    if (agentName !== undefined) attributes['gen_ai.agent.name'] = agentName
    switch (step.stepType) {
      case 'tool_execution': {
        const { callId } = step
        const { tools, calls } = this.#run.context()
        const name = getToolName(step.name, tools)
        attributes['gen_ai.operation.name'] = 'execute_tool'
        attributes['gen_ai.tool.name'] = name
        attributes['gen_ai.tool.call.id'] = callId
        attributes['gen_ai.tool.type'] = 'function'
        const call = calls.find(({ id }) => id === callId)
        if (call?.approved) attributes['statewright.tool.approved_by_person'] = true
        if (call?.edited) attributes['statewright.tool.edited'] = true
        if (call?.interrupted) attributes['statewright.tool.interrupted'] = true
        return { name: `execute_tool ${name}`, attributes }
      }
      case 'shield_call':
        attributes['statewright.shield.point'] = step.point
        if (step.callId !== undefined) attributes['gen_ai.tool.call.id'] = step.callId
        return { name: `statewright.shield ${step.point}`, attributes }
      default:
        attributes['gen_ai.operation.name'] = 'retrieval'
        return { name: 'retrieval', attributes }
    }
  }
}

/** A name that is no tool's is what the model says. */
function getToolName(name: string, tools: object): string {
  return Object.hasOwn(tools, name) ? name : 'unknown_tool'
}

function getStepKey(
  step: Exclude<StepStarted | StepCompleted, { stepType: 'inference' | 'hosted' }>,
): string {
  if (step.stepType === 'tool_execution') return `tool ${step.callId}`
  return step.stepType === 'shield_call' ? `shield ${step.point} ${step.callId ?? ''}` : 'retrieval'
}

function getMeasuredStepKey(step: OtherStep): string {
  if (step.type === 'tool_execution') return `tool ${step.callId}`
  return step.type === 'shield_call' ? `shield ${step.point} ${step.callId ?? ''}` : 'retrieval'
}
