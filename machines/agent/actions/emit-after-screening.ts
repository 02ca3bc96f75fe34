import type { Emit } from '../announcements.js'
import type { AgentContext } from '../context.js'
import type { AssistantMessage, ToolCall } from '../messages.js'
import type { BatchCall } from '../batch-calls.js'
import { withheldArguments, withheldName } from '../screening.js'
import { emitResult } from './update-transcript.js'

export function maskToolCall(call: ToolCall, tools: AgentContext['tools']): ToolCall {
  const { name } = call.function
  return {
    ...call,
    function: {
      name: Object.hasOwn(tools, name) ? name : withheldName,
      arguments: withheldArguments,
    },
  }
}

export function withCurrentCalls(message: AssistantMessage, calls: readonly BatchCall[]): AssistantMessage {
  if (message.tool_calls === undefined) return message
  const shown = message.tool_calls.map((original): ToolCall => {
    const call = calls.find(({ id }) => id === original.id)
    if (call === undefined || call.unscreenedArguments || call.edited) return original
    const { name, arguments: text } = call
    return { ...original, function: { name, arguments: text } }
  })
  return { ...message, tool_calls: shown }
}

/** Emits the events that were held back for screening: the answer and its calls first, then the results. */
export function emitAfterScreening(
  context: Pick<AgentContext, 'unemittedStep' | 'messages' | 'batchAt' | 'calls'>,
  emit: Emit,
  findings: () => void = () => undefined,
): Pick<AgentContext, 'unemittedStep' | 'calls'> {
  const { unemittedStep: stepId, messages, batchAt } = context
  const message = messages[batchAt]
  if (stepId && message?.role === 'assistant') {
    emit({ type: 'assistant_message', stepId, message })
    for (const call of message.tool_calls ?? []) emit({ type: 'tool_call', stepId, call })
  }
  findings()
  const calls = context.calls.map((call) => {
    if (!call.unscreenedArguments || call.result === undefined) return call
    const { unscreenedArguments: _unchecked, ...known } = call
    // Results that are still uncleared are emitted later.
    if (!call.unscreenedResult) emitResult(known, call.result, emit)
    return known
  })
  return { unemittedStep: null, calls }
}
