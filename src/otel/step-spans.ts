import {
  type Attributes,
  type AttributeValue,
  type Context,
  type Span,
  SpanKind,
  trace,
} from '@opentelemetry/api'
import type { EmittedEvent, StepCompleted, StepStarted } from '../../machines/agent/announcements.js'
import type { TelemetryRunInfo, TelemetryStepInfo } from '../core/telemetry/telemetry.js'
import { limitContent, recordFailure } from './span-content.js'
import { forEachThenThrow, type OtelKit, readMonotonicMs, type SpanPlace } from './otel-kit.js'
import type { Metrics } from './otel-metrics.js'
import { scrubSecrets } from '../core/shields/secrets.js'
import { countBudgetTokens } from '../../guards/budget.js'
import type { AgentContext } from '../../machines/agent/context.js'
import { getBudgetTotals, toBudgetLimits } from '../../machines/agent/budget-totals.js'
import { listRequests } from '../../machines/agent/questions.js'

type StartedStep = Exclude<StepStarted, { stepType: 'inference' | 'hosted' }>
type OtherStep = Exclude<TelemetryStepInfo, { type: 'inference' }>

interface OpenStep {
  readonly span: Span
  readonly context: Context
  readonly startedAt: number
}

/** The spans for one run's calls, shields and searches. Each lasts as long as its step. */
export function createStepSpans(
  { tracer, captureContent }: OtelKit,
  metrics: Metrics | null,
  run: TelemetryRunInfo,
) {
  const open = new Map<string, OpenStep>()

  function start(step: StepStarted, place: SpanPlace): void {
    if (step.stepType === 'inference' || step.stepType === 'hosted') return
    const { name, attributes } = describeStep(step, place)
    const span = tracer.startSpan(name, { kind: SpanKind.INTERNAL, attributes }, place.context)
    const context = trace.setSpan(place.context, span)
    open.set(getStepKey(step), { span, context, startedAt: readMonotonicMs() })
  }

  function findContext(step: OtherStep): Context | undefined {
    const work = open.get(getStepKey(step))
    if (work && step.type === 'tool_execution' && step.description !== '')
      work.span.setAttribute('gen_ai.tool.description', step.description)
    return work?.context
  }

  function findCallContext(callId: string): Context | undefined {
    return open.get(`tool ${callId}`)?.context
  }

  function complete(step: Exclude<StepCompleted, { stepType: 'inference' | 'hosted' }>): void {
    const key = getStepKey(step)
    const work = open.get(key)
    if (work === undefined) return
    open.delete(key)
    const { span, startedAt } = work
    const { outcome, error } = step
    const ended: Attributes = outcome === 'cancelled' ? { 'statewright.cancelled': true } : {}
    let failure = error?.code
    if (step.stepType === 'tool_execution') {
      const { toolCall, toolResponse } = step.payload
      if (toolResponse) ended['statewright.tool.status'] = toolResponse.status
      if (toolResponse?.errorKind) ended['statewright.tool.error_kind'] = toolResponse.errorKind
      if (toolResponse && toolResponse.status !== 'ok') failure ??= toolResponse.status
      if (captureContent) {
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
      recordFailure(span, error, captureContent && !isWithheld())
    }
    span.setAttributes(ended)
    span.end()
    if (step.stepType !== 'tool_execution' || !metrics?.agent) return
    const name = getToolName(step.name, run.context().tools)
    const counted: Attributes = { 'gen_ai.tool.name': name, 'gen_ai.tool.type': 'function' }
    if (failure !== undefined) counted['error.type'] = failure
    metrics.agent.toolCall.record((readMonotonicMs() - startedAt) / 1000, counted)
  }

  /** Whether shields of this run, or of a parent run, check the results of its tools. */
  function isWithheld(): boolean {
    return run.parent?.isUncleared === true || run.context().features.resultShields
  }

  /** Ends the steps whose end is no longer reported. */
  function endAll(): void {
    const left = [...open.values()]
    open.clear()
    forEachThenThrow(left, ({ span }) => {
      span.setAttribute('statewright.cancelled', true)
      span.end()
    })
  }

  function describeStep(step: StartedStep, { agentName, sessionId }: SpanPlace): SpanEvent {
    const attributes: Attributes = { 'gen_ai.conversation.id': sessionId }
    if (agentName !== undefined) attributes['gen_ai.agent.name'] = agentName
    switch (step.stepType) {
      case 'tool_execution': {
        const { callId } = step
        const { tools, calls } = run.context()
        const name = getToolName(step.name, tools)
        attributes['gen_ai.operation.name'] = 'execute_tool'
        attributes['gen_ai.tool.name'] = name
        attributes['gen_ai.tool.call.id'] = callId
        attributes['gen_ai.tool.type'] = 'function'
        const call = calls.find(({ id }) => id === callId)
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

  return { start, findContext, findCallContext, complete, endAll }
}

/** Returns the name of a known tool. An unknown name is replaced, because it may be content from the model. */
function getToolName(name: string, tools: object): string {
  return Object.hasOwn(tools, name) ? name : 'unknown_tool'
}

function getStepKey(
  step: OtherStep | Exclude<StepStarted | StepCompleted, { stepType: 'inference' | 'hosted' }>,
): string {
  if ('point' in step) return `shield ${step.point} ${step.callId ?? ''}`
  return 'callId' in step ? `tool ${step.callId}` : 'retrieval'
}

/** Attributes at the start of a stretch, for samplers. */
export function createStretchStart(run: TelemetryRunInfo, agentName: string | undefined): SpanEvent {
  const attributes: Attributes = {
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.conversation.id': run.sessionId,
    'gen_ai.request.model': run.model.model,
    'statewright.run.id': run.runId,
    'statewright.resumed': run.isResumed,
  }
  if (agentName === undefined) return { name: 'invoke_agent', attributes }
  attributes['gen_ai.agent.name'] = agentName
  return { name: `invoke_agent ${agentName}`, attributes }
}

/**
 * Attributes at the end of a stretch. The stretch's tokens are `statewright.usage.*`, because the requests already have
 * `gen_ai.usage.*`, and a sum over all spans must not count tokens twice.
 */
export function createStretchEnd(
  context: AgentContext,
  state: string | null,
  reason: string | null,
): Attributes {
  const { steps, config } = context
  const { run: usage } = context.usage
  const { maxSteps, tokenBudget, outputTokens, costLimit } = config.limits
  const totals = getBudgetTotals(context)
  const attributes: Attributes = {
    'statewright.steps': steps,
    'statewright.usage.input_tokens': usage.inputTokens,
    'statewright.usage.output_tokens': usage.outputTokens,
    'statewright.usage.cache_read.input_tokens': usage.cachedInputTokens,
    'statewright.usage.reasoning.output_tokens': usage.reasoningTokens,
  }
  if (state !== null) attributes['statewright.outcome.state'] = state
  if (reason !== null) attributes['statewright.outcome.reason'] = reason
  if (usage.cost !== null) attributes['statewright.usage.cost_usd'] = usage.cost
  if (usage.estimated) attributes['statewright.usage.estimated'] = true
  const budget = (name: string, limit: number | null, used: number | null): void => {
    if (limit === null || limit === 0 || used === null) return
    attributes[`statewright.budget.${name}.limit`] = limit
    attributes[`statewright.budget.${name}.used`] = used
  }
  budget('steps', maxSteps, steps)
  budget('tokens', tokenBudget, countBudgetTokens(totals, toBudgetLimits(config)))
  budget('output_tokens', outputTokens, totals.outputTokens)
  budget('cost_usd', costLimit, totals.cost)
  return attributes
}

/** Returns content from people, tools and models without secrets, or undefined if it is not captured. */
type Show = (content: string | undefined) => string | undefined

/** The span events for a run's events. */
const spanEvents: {
  readonly [Type in EmittedEvent['type']]?: (
    event: Extract<EmittedEvent, { type: Type }>,
    show: Show,
  ) => SpanEvent | null
} = {
  state_changed: ({ from, to, reason, wakeAt }) =>
    // State changes between requests and calls happen in every step. The spans of requests and calls already show them,
    // and a span has room for few events.
    to === 'WAITING_FOR_TOOL' || (to === 'RUNNING' && from === 'WAITING_FOR_TOOL')
      ? null
      : createSpanEvent('state', { from, to, reason, wake_at: wakeAt }),
  guardrail: ({ guard, action, rule, evidence, message }, show) =>
    createSpanEvent('guardrail', { guard, action, rule, evidence: show(evidence), message: show(message) }),
  approval_decided: ({ outcome, by, why, grant, ...call }, show) =>
    createCallEvent('approval.decided', call, { outcome, by: by?.id, grant, why: show(why) }),
  policy_decided: ({ policy: id, decision, rule, reason, shadow, ...call }, show) => {
    const own = { id, decision, rule, shadow: shadow || undefined, reason: show(reason) }
    return createCallEvent('policy.decision', call, own)
  },
  retry: ({ attempt, delayMs, code, message, model }, show) =>
    createSpanEvent('retry', { attempt, delay_ms: delayMs, code, model, message: show(message) }),
  budget_warning: ({ remainingTokens: tokens, remainingCost: cost }) =>
    createSpanEvent('budget_warning', { remaining_tokens: tokens, remaining_cost_usd: cost }),
  tools_loaded: ({ names }) => createSpanEvent('tools_loaded', { names: names.join(', ') }),
  handed_off: ({ from, to }) => createSpanEvent('handed_off', { from, to }),
  step_prepared: ({ changes, model }) =>
    createSpanEvent('step_prepared', { changes: changes.join(', '), model }),
  context_fitted: ({ strategy, before, after, dropped }) =>
    createSpanEvent('context_fitted', { strategy, before, after, dropped }),
}

const createShow =
  (isCaptured: boolean): Show =>
  (content) =>
    isCaptured && content !== undefined ? scrubSecrets(content) : undefined

/** The span event for a run's event, or null. */
export function toSpanEvent(announcement: EmittedEvent, captureContent: boolean): SpanEvent | null {
  return spanEvents[announcement.type]?.(announcement as never, createShow(captureContent)) ?? null
}

/** The open questions of a run that starts to wait. A sub-agent's questions are on its own span. */
export function listQuestionEvents(context: AgentContext, captureContent: boolean): SpanEvent[] {
  return listRequests(context).flatMap((request) => {
    if (request.type !== 'approval_requested' || request.path !== undefined) return []
    const reason = createShow(captureContent)(request.reason)
    return [createCallEvent('approval.requested', request, { reason })]
  })
}

/** A span or an event of a span. */
interface SpanEvent {
  name: string
  attributes: Attributes
}

type OwnAttributes = Readonly<Record<string, AttributeValue | null | undefined>>

/** An event about a call. Its attributes have the prefix of the event's subject: `statewright.policy.id`. */
function createCallEvent(
  name: `${string}.${string}`,
  { name: tool, callId }: { name: string; callId: string },
  own: OwnAttributes,
): SpanEvent {
  const { attributes } = createSpanEvent(name.slice(0, name.indexOf('.')), own)
  const call = { 'gen_ai.tool.name': tool, 'gen_ai.tool.call.id': callId }
  return { name: `statewright.${name}`, attributes: { ...call, ...attributes } }
}

/** Omits attributes without a value. */
function createSpanEvent(name: string, own: OwnAttributes): SpanEvent {
  const attributes = Object.entries(own).flatMap(([key, value]) =>
    value === undefined || value === null ? [] : [[`statewright.${name}.${key}`, value]],
  )
  return { name: `statewright.${name}`, attributes: Object.fromEntries(attributes) as Attributes }
}
