import { type Attributes, type Context, type Span, SpanKind, trace } from '@opentelemetry/api'
import type { EmittedEvent, StepCompleted } from '../../machines/agent/announcements.js'
import type { Usage } from '../../machines/agent/usage.js'
import type { TelemetryRequestInfo } from '../core/telemetry/telemetry.js'
import {
  formatInputMessages,
  formatOutputMessages,
  formatInstructions,
  recordFailure,
} from './span-content.js'
import { forEachThenThrow, type OtelKit, readMonotonicMs, type SpanPlace } from './otel-kit.js'
import { type Metrics, getSemconvProvider, recordUsage } from './otel-metrics.js'

type CompletedInference = Extract<StepCompleted, { stepType: 'inference' }>
type HostedStep = Extract<StepCompleted, { stepType: 'hosted' }>
type SlotWait = Extract<EmittedEvent, { type: 'waiting_for_slot' }>

interface OpenRequest {
  readonly request: TelemetryRequestInfo
  readonly span: Span
  readonly context: Context
  readonly startedAt: number
  /** The model at the start. A fallback may change it. */
  readonly begun: Pick<TelemetryRequestInfo, 'provider' | 'model' | 'endpoint'>
  endedAt: number | null
  completed: CompletedInference | null
}

/**
 * The spans for one run's requests. A request ends with its step, or when a fallback model is requested. The span of
 * the request ends later, when the run has counted the attempt's usage, because spans report only counted tokens.
 */
export function createRequestSpans({ tracer, names, captureContent }: OtelKit, metrics: Metrics | null) {
  /** All models of the current attempt, latest last. */
  let requests: readonly OpenRequest[] = noRequests
  /** The usage of the attempt, if it was reported before the end. */
  let spent: Usage | null = null

  /** The context for the request's own work. Starts the request's span if there is none. */
  function getContext(request: TelemetryRequestInfo, place: SpanPlace, begun: () => void): Context {
    const known = requests.find((one) => one.request === request)
    if (known) return known.context
    const last = requests.at(-1)
    settleCompleted()
    if (last && !last.completed) last.endedAt = readMonotonicMs()
    begun()
    const opened = begin(request, place)
    requests = requests.concat(opened)
    return opened.context
  }

  /** Adds an event to the request for a tool that the provider runs, because the tool is not executed here. */
  function addHostedTool({ name, outcome, startedAt, completedAt }: HostedStep): void {
    requests.at(-1)?.span.addEvent('statewright.hosted_tool', {
      'gen_ai.tool.name': name,
      'statewright.hosted_tool.outcome': outcome,
      'statewright.hosted_tool.duration': Math.max(0, completedAt - startedAt) / 1000,
    })
  }

  function addWait({ limiter, ahead }: SlotWait): void {
    requests.at(-1)?.span.addEvent('statewright.waiting_for_slot', {
      'statewright.waiting_for_slot.limiter': limiter,
      'statewright.waiting_for_slot.ahead': ahead,
    })
  }

  /** Records the end of the attempt, whose usage is not counted yet. */
  function complete(completed: CompletedInference): void {
    const last = requests.at(-1)
    if (last === undefined || last.completed) return
    last.completed = completed
    // With output shields, the usage was counted when the answer arrived.
    last.endedAt ??= readMonotonicMs()
    if (spent !== null) settle()
  }

  /** The total usage of the attempt, reported right before or after its end. */
  function pay(used: Usage): void {
    const last = requests.at(-1)
    if (last === undefined) return
    spent = used
    last.endedAt ??= readMonotonicMs()
    if (last.completed) settle()
  }

  /** Ends an attempt that has completed without usage. */
  function settleCompleted(): void {
    if (requests.at(-1)?.completed) settle()
  }

  /** Divides the usage: that of each replaced model is known, and the last model has used the rest. */
  function settle(): void {
    const all = requests
    let left = spent
    requests = noRequests
    spent = null
    forEachThenThrow(all.entries(), ([i, request]) => {
      const isLast = i === all.length - 1
      const own: Usage | null = left === null || isLast ? left : capUsage(request.request.usage, left)
      if (left !== null && own !== null && !isLast) left = takeOff(left, own)
      end(request, own)
    })
  }

  function begin(request: TelemetryRequestInfo, place: SpanPlace): OpenRequest {
    const attributes = toSpanAttributes(request, place)
    if (captureContent) {
      attributes['gen_ai.input.messages'] = formatInputMessages(request.request)
      attributes['gen_ai.system_instructions'] = formatInstructions(request.request)
    }
    const span = tracer.startSpan(
      `chat ${request.model}`,
      { kind: SpanKind.CLIENT, attributes },
      place.context,
    )
    const context = trace.setSpan(place.context, span)
    const { provider, model, endpoint } = request
    const begun = { provider, model, endpoint }
    return { request, span, context, startedAt: readMonotonicMs(), begun, endedAt: null, completed: null }
  }

  function end(open: OpenRequest, usage: Usage | null): void {
    const { request, span, startedAt, endedAt, completed } = open
    const { response, responseId, failure, sentAt, firstChunkAt } = request
    renameSpan(open)
    const isAccepted = completed?.outcome === 'ok'
    const ended: Attributes = { 'statewright.accepted': isAccepted }
    const firstChunkS = firstChunkAt === null ? null : Math.max(0, firstChunkAt - sentAt) / 1000
    if (firstChunkS !== null) ended['gen_ai.response.time_to_first_chunk'] = firstChunkS
    if (response !== null) {
      if (responseId !== null) ended['gen_ai.response.id'] = responseId
      if (response.model !== null) ended['gen_ai.response.model'] = response.model
      if (response.finishReason !== null) ended['gen_ai.response.finish_reasons'] = [response.finishReason]
    }
    if (usage !== null) {
      ended['gen_ai.usage.input_tokens'] = usage.inputTokens
      ended['gen_ai.usage.output_tokens'] = usage.outputTokens
      if (usage.cachedInputTokens > 0) ended['gen_ai.usage.cache_read.input_tokens'] = usage.cachedInputTokens
      if (usage.cacheWriteTokens !== undefined) ended[names.cacheWrite] = usage.cacheWriteTokens
      if (usage.reasoningTokens > 0) ended['gen_ai.usage.reasoning.output_tokens'] = usage.reasoningTokens
      if (usage.cost !== null) ended['statewright.usage.cost_usd'] = usage.cost
      if (usage.estimated) ended['statewright.usage.estimated'] = true
    }
    const answered = completed?.payload.modelResponse
    if (captureContent && answered) ended['gen_ai.output.messages'] = formatOutputMessages(answered)
    const error = failure?.code ?? completed?.error?.code
    if (error !== undefined) {
      ended['error.type'] = error
      recordFailure(span, completed?.error, captureContent)
    } else if (!isAccepted) ended['statewright.cancelled'] = true
    const durationS = ((endedAt ?? readMonotonicMs()) - startedAt) / 1000
    const waits = listWaits(request, durationS)
    if (waits.length > 0)
      ended['statewright.waiting_for_slot.duration'] = waits.reduce((sum, { seconds }) => sum + seconds, 0)
    span.setAttributes(ended)
    span.end(endedAt ?? undefined)
    if (metrics === null) return
    const counted = toMetricAttributes(request, error)
    metrics.requestDuration.record(durationS, counted)
    if (firstChunkS !== null) metrics.firstChunk.record(firstChunkS, counted)
    for (const { limiter, seconds } of waits) metrics.wait.record(seconds, { limiter })
    if (usage !== null) recordUsage(metrics, usage, counted)
  }

  return { getContext, addHostedTool, addWait, complete, pay, settleCompleted, settle }
}

const noRequests: readonly OpenRequest[] = []

/** If a request was stopped while it waited, the wait lasted until the end of the request. */
function listWaits(
  { sentAt, waits }: TelemetryRequestInfo,
  durationS: number,
): { limiter: string; seconds: number }[] {
  return waits.map(({ limiter, since, until }) => {
    const seconds = until === null ? durationS - (since - sentAt) / 1000 : (until - since) / 1000
    return { limiter, seconds: Math.max(0, seconds) }
  })
}

/** Changes the span only after a fallback, because a span processor may have renamed it. */
function renameSpan({ request, span, begun }: OpenRequest): void {
  const { provider, model, endpoint } = request
  if (begun.provider === provider && begun.model === model && begun.endpoint === endpoint) return
  span.updateName(`chat ${model}`)
  // Span attributes cannot be removed, so an unknown server needs an explicit value.
  const server = endpoint ?? (begun.endpoint && { host: '', port: 0 })
  span.setAttributes({ ...toModelAttributes(request), ...toServerAttributes(server) })
}

function toModelAttributes({ provider, model }: TelemetryRequestInfo): Attributes {
  return {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': getSemconvProvider(provider),
    'gen_ai.request.model': model,
  }
}

const toServerAttributes = (server: TelemetryRequestInfo['endpoint']): Attributes =>
  server === null ? {} : { 'server.address': server.host, 'server.port': server.port }

const samplingNames = [
  ['temperature', 'temperature'],
  ['topP', 'top_p'],
  ['maxTokens', 'max_tokens'],
  ['frequencyPenalty', 'frequency_penalty'],
  ['presencePenalty', 'presence_penalty'],
  ['seed', 'seed'],
  ['reasoningEffort', 'reasoning.level'],
] as const

function toSpanAttributes(request: TelemetryRequestInfo, { agentName, sessionId }: SpanPlace): Attributes {
  const { purpose, step, attempt, fallback, endpoint } = request
  const { sampling, stream, responseFormat } = request.request
  const attributes: Attributes = {
    ...toModelAttributes(request),
    'gen_ai.conversation.id': sessionId,
    'gen_ai.request.stream': stream,
    'statewright.step': step,
    'statewright.attempt': attempt,
    'statewright.purpose': purpose,
    ...toServerAttributes(endpoint),
  }
  if (agentName !== undefined) attributes['gen_ai.agent.name'] = agentName
  if (fallback > 0) attributes['statewright.fallback'] = fallback
  if (responseFormat) attributes['gen_ai.output.type'] = 'json'
  for (const [key, name] of samplingNames)
    if (sampling[key] !== undefined) attributes[`gen_ai.request.${name}`] = sampling[key]
  const { stop } = sampling
  if (stop !== undefined) attributes['gen_ai.request.stop_sequences'] = [stop].flat()
  return attributes
}

function toMetricAttributes(request: TelemetryRequestInfo, error: string | undefined): Attributes {
  const attributes = toModelAttributes(request)
  const { response } = request
  if (typeof response?.model === 'string') attributes['gen_ai.response.model'] = response.model
  if (error !== undefined) attributes['error.type'] = error
  return attributes
}

const countedKeys = [
  'inputTokens',
  'outputTokens',
  'totalTokens',
  'cachedInputTokens',
  'reasoningTokens',
] as const

/** The usage of one of several models, limited to the usage that the run has counted. */
function capUsage(used: Usage | null, counted: Usage): Usage | null {
  if (used === null) return null
  const { cacheWriteTokens: writes, ...capped } = used
  for (const key of countedKeys) capped[key] = Math.min(capped[key], counted[key])
  const written = Math.min(writes ?? 0, counted.cacheWriteTokens ?? 0)
  return { ...capped, ...(written > 0 && { cacheWriteTokens: written }) }
}

/** The counted usage without the part of one model. */
function takeOff(counted: Usage, part: Usage): Usage {
  const { cacheWriteTokens: writes = 0, ...rest } = counted
  for (const key of countedKeys) rest[key] -= part[key]
  if (rest.cost !== null) rest.cost = Math.max(0, rest.cost - (part.cost ?? 0))
  const written = writes - (part.cacheWriteTokens ?? 0)
  return { ...rest, ...(written > 0 && { cacheWriteTokens: written }) }
}
