import type { AgentContext } from '../../machines/agent/context.js'
import { maskContext } from '../../machines/agent/mask-uncleared.js'
import type { Message } from '../../machines/agent/messages.js'
import { buildRequest } from '../core/effects/build-request.js'
import { applyPlan } from '../core/effects/apply-plan.js'
import { formatMessageText } from '../core/format/format-words.js'
import { type AgentParts, isLostSpeaker, toSpeaker } from '../core/live/agent-parts.js'
import type { ModelRequest } from '../core/models/provider.js'
import type { SessionFold } from './session-fold.js'
import { isRequestEnd } from './session-query.js'
import { endsRequest, findEffectiveInstructions, findUsage, type RequestEnd } from './session-step.js'
import { toShownText, toShownValue, withheldNote } from './shown-values.js'

export type RequestView = NonNullable<ReturnType<typeof createRequestView>>

/**
 * Messages and response come from the log, the rest from the agent's current configuration. Without the session's
 * agent, the parts that are not in the log are null. Returns null for other records.
 */
export function createRequestView(
  fold: SessionFold,
  { seq, all, parts }: { seq: number; all: boolean; parts: AgentParts | undefined },
) {
  const step = fold.findStep(seq)
  if (!step?.was || !endsRequest(step.event)) return null
  const { event, was: context } = step
  const masked = maskContext(context)
  const rebuilt = rebuildRequest(masked, event, parts)
  const messages = rebuilt?.request.messages ?? masked.messages
  const known = all ? new Set() : listEarlierMessages(fold, seq, parts)
  const own = findEffectiveInstructions(step.before.session, undefined)?.text
  const instructions = rebuilt ? rebuilt.request.instructions : own
  const tools = rebuilt?.request.tools ?? Object.keys(context.tools).map((name) => ({ name }))
  return {
    seq,
    step: context.steps + 1,
    model: rebuilt?.model ?? null,
    instructions: instructions == null ? null : toShownText(instructions),
    /** The messages that were not in the previous request, or all messages. */
    messages: messages.filter(({ id }) => !known.has(id)).map(toRequestMessage),
    total: messages.length,
    nudges: (rebuilt?.request.nudges ?? context.nudges).map((text) => toShownText(text)),
    tools: tools.map((tool) => ({
      name: tool.name,
      description: 'description' in tool ? toShownText(tool.description) : null,
      parameters: 'parameters' in tool ? toShownValue(tool.parameters) : null,
    })),
    /** Sampling, tool choice, response format and other keys of the request. */
    settings: rebuilt ? listSettings(rebuilt.request) : null,
    response: event.withheld
      ? withheldNote
      : toShownValue('output' in event ? event.output.response : event.error),
    answer: createAnswer(event),
  }
}

/** Null without the agent, or if it no longer has the request's model or speaker. */
function rebuildRequest(
  context: AgentContext,
  { type }: Pick<RequestEnd, 'type'>,
  parts: AgentParts | undefined,
) {
  if (!parts || isLostSpeaker(parts.tools, context.speaker)) return null
  const concludes = type.endsWith('conclusion')
  const model = context.plan?.model
  if (model !== undefined && !Object.hasOwn(parts.models ?? {}, model)) return null
  const own = applyPlan(toSpeaker(parts, context.speaker), concludes ? null : context)
  return {
    request: buildRequest(own, context, concludes),
    model: {
      name: own.model.model,
      provider: own.model.provider,
      host: own.model.endpoint ? `${own.model.endpoint.host}:${own.model.endpoint.port}` : null,
    },
  }
}

function listEarlierMessages(
  fold: SessionFold,
  seq: number,
  parts: AgentParts | undefined,
): ReadonlySet<string> {
  const row = fold.rows.findLast((one) => one.seq < seq && isRequestEnd(one))
  const before = row && fold.findStep(row.seq)
  if (!before?.was || !endsRequest(before.event)) return new Set()
  const rebuilt = rebuildRequest(before.was, before.event, parts)
  return new Set((rebuilt?.request.messages ?? before.was.messages).map(({ id }) => id))
}

function toRequestMessage(message: Message) {
  const calls = message.role === 'assistant' ? (message.tool_calls ?? []) : []
  return {
    id: message.id,
    role: message.role,
    text: toShownText(formatMessageText(message)),
    calls: calls.map(({ function: { name, arguments: text } }) => ({
      name: toShownText(name, 200),
      arguments: toShownText(text),
    })),
  }
}

function listSettings(request: ModelRequest): Record<string, unknown> {
  const { toolChoice, responseFormat } = request
  return toShownValue({
    ...request.sampling,
    ...(toolChoice !== undefined && { toolChoice }),
    ...(responseFormat && { responseFormat }),
    stream: request.stream,
    ...request.extraBody,
  }) as Record<string, unknown>
}

function createAnswer(event: RequestEnd) {
  const usage = findUsage(event)
  if (!usage) return null
  const { model, finishReason } =
    'output' in event ? event.output.response : { model: null, finishReason: null }
  return {
    model: model === null ? null : toShownText(model, 200),
    finishReason,
    inputTokens: usage.inputTokens,
    cachedTokens: usage.cachedInputTokens,
    outputTokens: usage.outputTokens,
    reasoningTokens: usage.reasoningTokens,
    /** In USD. Null if the price is unknown. */
    cost: usage.cost,
    isEstimated: usage.estimated,
  }
}
