import type { AgentContext, Features, AgentMachineEvent } from './context.js'
import type { BatchCall } from './batch-calls.js'
import {
  unclearedInput,
  withheldAnswer,
  withheldArguments,
  withheldName,
  withheldResult,
} from './screening.js'
import type { AssistantMessage, UserMessage } from './messages.js'

export function hasUnclearedContent(event: AgentMachineEvent, features: Features): boolean {
  switch (event.type) {
    case 'xstate.done.actor.model':
    case 'xstate.done.actor.conclusion':
      return features.outputShields || (features.callShields && event.output.response.toolCalls.length > 0)
    case 'APPROVE':
      return features.callShields && event.arguments !== undefined
    case 'TOOL_RESULT':
    case 'TOOL_OUTPUT':
    case 'HANDLE_SAVED':
      return features.resultShields
    case 'CHILD_WAITING':
      return features.resultShields && event.memo !== undefined
    case 'REJECT':
      return (features.inputShields || features.resultShields) && event.why !== ''
    case 'REPLY':
    case 'STEER':
      return features.inputShields
    default:
      return false
  }
}

/** Replaces the text of an answer, and removes the fields that could repeat it. */
export function withholdMessage(message: AssistantMessage, content: string): AssistantMessage {
  const {
    refusal: _refusal,
    reasoning: _reasoning,
    reasoning_details: _details,
    provider_items: _items,
    media: _media,
    annotations: _annotations,
    ...rest
  } = message
  return { ...rest, content, data: { withheld: true } }
}

/** The state of a run for display, with uncleared content masked. A run cannot resume from it. */
export function maskContext(context: AgentContext): AgentContext {
  const { features, inbox, steering, pendingAnswer, unscreenedText, continuedText, calls } = context
  return {
    ...context,
    messages: maskMessages(context),
    inbox: features.inputShields ? inbox.map(() => ({ content: unclearedInput })) : inbox,
    steering: features.inputShields ? steering.map(() => unclearedInput) : steering,
    pendingAnswer: pendingAnswer && { ...pendingAnswer, text: withheldAnswer, outputProblem: null },
    unscreenedText: unscreenedText && { ...unscreenedText, text: continuedText },
    calls: calls.map((call) => maskBatchCall(call, context)),
  }
}

function maskBatchCall(call: BatchCall, { tools, features }: AgentContext): BatchCall {
  const seen = features.resultShields ? maskKept(call) : call
  const name = call.unscreenedArguments && !Object.hasOwn(tools, call.name) ? withheldName : call.name
  const shown = call.unscreenedArguments ? { ...seen, name, arguments: withheldArguments } : seen
  if (!shown.unscreenedResult || shown.result === undefined) return shown
  const { media: _media, ...result } = shown.result
  return { ...shown, result: { ...result, content: withheldResult } }
}

/** A tool's handle comes from the tool, so it is masked like the result. */
function maskKept(call: BatchCall): BatchCall {
  const { memo, handle } = call
  if (memo === undefined && handle === undefined) return call
  return { ...call, ...(memo !== undefined && { memo: null }), ...(handle !== undefined && { handle: null }) }
}

export function listUnclearedInput({ features, messages }: AgentContext): UserMessage[] {
  if (!features.inputShields) return []
  const spoken = messages.findLastIndex(({ role }) => role === 'assistant')
  return messages
    .slice(spoken + 1)
    .filter((message): message is UserMessage => message.role === 'user' && !message.internal)
    .filter((message) => message.data?.['screened'] !== true)
}

export function maskMessages(context: AgentContext): AgentContext['messages'] {
  const unseen = listUnclearedInput(context)
  if (unseen.length === 0) return context.messages
  return context.messages.map((message) =>
    message.role === 'user' && unseen.includes(message) ? maskMessage(message, unclearedInput) : message,
  )
}

export function maskMessage(message: UserMessage, content: string): UserMessage {
  return { ...message, content, data: { ...message.data, screened: true, withheld: true } }
}

export function listUnclearedCalls({ calls }: Pick<AgentContext, 'calls'>): BatchCall[] {
  return calls.filter((call) => call.unscreenedArguments || (call.undecided && call.result === undefined))
}
