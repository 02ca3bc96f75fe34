import { omitUndefined } from '../../../guards/lib/json.js'
import { observeAll } from '../../../guards/state.js'
import { toAction, toActionOn } from '../update-action.js'
import type { EmittedEvent } from '../announcements.js'
import { type AgentContext, getEventTime } from '../context.js'
import { type AssistantMessage, formatMessageId, getStepId, type ToolCall } from '../messages.js'
import { isUnloadedTool } from '../batch-calls.js'
import { type ModelOutput, classifyResponse } from '../model-response.js'
import { type UnclearedAnswer, withheldAnswer, withheldArguments, withheldName } from '../screening.js'
import { spendUsage } from './spend-usage.js'
import { joinPieces } from './update-transcript.js'
import { withholdMessage } from '../mask-uncleared.js'
import { findAnsweringCall } from '../call-state.js'

const answered = ['xstate.done.actor.model', 'xstate.done.actor.conclusion'] as const

/** The usage is counted and the response is in the transcript before guards check it. */
export const recordResponse = toActionOn(answered, (context, event, emit) => {
  const { response, calls: needs } = event.output
  const kind = classifyResponse(response)
  const stepId = getStepId(context)
  const number = context.lastMessageNumber + 1
  // A truncated JSON object cannot be continued, so the model is asked again.
  const isPiece = kind === 'truncated' && !context.features.structuredOutput
  const pendingAnswer = toUnclearedAnswer(context, event.output, stepId, isPiece)
  const recorded =
    context.features.outputShields && !event.output.reasoningCleared ? withoutReasoning(response) : response
  const whole =
    kind === 'empty' ? null : toAssistantMessage(recorded, formatMessageId(number), getEventTime(event))
  const uncheckedCalls = context.features.callShields && response.toolCalls.length > 0
  const isUntold = whole !== null && (pendingAnswer !== null || uncheckedCalls)
  const message =
    whole && isUntold ? maskUnclearedMessage(whole, pendingAnswer !== null, context.tools) : whole

  if (!response.complete) emit(missingEndWarning)
  if (message && !isUntold) {
    emit({ type: 'assistant_message', stepId, message })
    for (const call of response.toolCalls) emit({ type: 'tool_call', stepId, call })
  }

  return {
    unemittedStep: isUntold ? stepId : null,
    messages: message ? context.messages.concat(message) : context.messages,
    lastMessageNumber: message
      ? context.lastMessageNumber + 1 + response.toolCalls.length
      : context.lastMessageNumber,
    steps: context.steps + 1,
    attempt: 1,
    rateLimits: 0,
    response: kind,
    outputProblem: pendingAnswer ? null : (event.output.outputProblem ?? null),
    // A stopped run's conclusion is its final answer. The run keeps the reason it was stopped.
    error: event.type === 'xstate.done.actor.conclusion' ? context.error : null,
    nudges: [],
    calls: response.toolCalls.map((call, i) => ({
      id: call.id,
      name: call.function.name,
      arguments: call.function.arguments,
      needs: needs[i]?.needs ?? ('nobody' as const),
      ...(call.hosted
        ? { hosted: true as const }
        : isUnloadedTool(context, call.function.name) && { unloaded: true as const }),
      ...pickMarks(needs[i]),
      ...(uncheckedCalls && { unscreenedArguments: true as const }),
    })),
    guardrails:
      response.toolCalls.length > 0
        ? context.guardrails
        : observeAll(context.guardrails, { type: 'text' }, context.config.guardrails),
    batchAt: context.messages.length,
    batchNumber: number,
    // Optional keys come last, because engines create objects with constant leading keys faster.
    ...spendUsage(context, response.usage, emit),
    ...(pendingAnswer
      ? { pendingAnswer }
      : joinPieces(context, isPiece, response.text || response.refusal || '')),
    ...(context.resends && { resends: 0 }),
    ...(!pendingAnswer && !isPiece && { unscreenedText: null }),
  }
})

function pickMarks({ decisions, client, approvalTimedOut }: Partial<ModelOutput['calls'][number]> = {}) {
  return omitUndefined({ decisions, client, approvalTimedOut })
}

function toAssistantMessage(
  response: ModelOutput['response'],
  id: string,
  createdAt: number,
): AssistantMessage {
  const { text, refusal, toolCalls } = response
  return {
    role: 'assistant',
    id,
    createdAt,
    content: text === '' && toolCalls.length > 0 ? null : text,
    ...(toolCalls.length > 0 && { tool_calls: toolCalls }),
    ...(refusal !== null && { refusal }),
    ...pickReasoning(response),
    ...(response.by !== undefined && { by: response.by }),
  }
}

function pickReasoning(response: ModelOutput['response']): NonNullable<UnclearedAnswer['reasoning']> {
  const { reasoning, reasoningDetails, providerItems, media, annotations } = response
  return {
    ...(reasoning !== '' && { reasoning }),
    ...(reasoningDetails && { reasoning_details: reasoningDetails }),
    ...(providerItems && { provider_items: providerItems }),
    ...(media && { media }),
    ...(annotations && { annotations }),
  }
}

function toUnclearedAnswer(
  { features }: AgentContext,
  { response, reasoningCleared, outputProblem = null }: ModelOutput,
  stepId: string,
  isPiece: boolean,
): UnclearedAnswer | null {
  const { text, refusal } = response
  const held = text || refusal || ''
  if (!features.outputShields || held === '') return null
  const isRefusal = text === '' && refusal !== null
  const reasoning = reasoningCleared ? pickReasoning(response) : {}
  return { stepId, text: held, isRefusal, isPiece, reasoning, outputProblem }
}

/** Removes the reasoning, because logs from early versions contain reasoning that was not screened. */
function withoutReasoning({
  reasoningDetails: _details,
  providerItems: _items,
  media: _media,
  annotations: _annotations,
  ...response
}: ModelOutput['response']): ModelOutput['response'] {
  return { ...response, reasoning: '' }
}

function maskUnclearedMessage(whole: AssistantMessage, isUncleared: boolean, tools: AgentContext['tools']) {
  const calls = whole.tool_calls?.map((call) => maskToolCall(call, tools))
  const message = { ...whole, ...(calls && { tool_calls: calls }) }
  return isUncleared ? withholdMessage(message, withheldAnswer) : message
}

function maskToolCall(call: ToolCall, tools: AgentContext['tools']): ToolCall {
  const { name } = call.function
  const known = Object.hasOwn(tools, name) ? name : withheldName
  return { ...call, function: { name: known, arguments: withheldArguments } }
}

const missingEndWarning: EmittedEvent = {
  type: 'warning',
  code: 'missing_end',
  message:
    'The stream closed without a finish reason or [DONE]; accepted as complete (completion.onMissingEnd).',
}

/** The result is already in the transcript. Output shields screen it like any answer. */
export const takeResult = toAction((context, event) => {
  const { runId, steps, batchNumber, features } = context
  const text = findAnsweringCall(context)?.result?.content ?? context.output
  const outputProblem =
    event.type === 'xstate.done.actor.resultGuards' ? (event.output.outputProblem ?? null) : null
  if (!features.outputShields) return { response: 'answer', output: text, outputProblem }
  const stepId = `${getStepId({ runId, steps: steps - 1, lastMessageNumber: batchNumber - 1 })}.result`
  const pendingAnswer = { stepId, text, isRefusal: false, isPiece: false, reasoning: {}, outputProblem }
  return { response: 'answer', pendingAnswer }
})
