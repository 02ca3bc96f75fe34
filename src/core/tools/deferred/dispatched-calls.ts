import type { JsonObject } from '../../../../machines/agent/json.js'
import type { AssistantMessage, Message, ToolCall } from '../../../../machines/agent/messages.js'
import { parseJsonOr } from '../../base/json.js'
import { asObject } from '../../base/values.js'
import { defineTool } from '../define-tool.js'
import type { Tool } from '../tool.js'

const dispatcherName = 'call_tool'

/** The tool by which the model calls the tools that searches have loaded. It is executed only for what names no tool. */
export function createDispatcher(): Tool {
  return defineTool({
    name: dispatcherName,
    description: 'Calls a tool that tool_search has loaded. Its result says which arguments the tool takes.',
    input: {
      type: 'object',
      properties: {
        name: { type: 'string', minLength: 1, description: 'The name of the tool.' },
        arguments: { type: 'object', description: 'What the tool is called with.', properties: {} },
      },
      required: ['name', 'arguments'],
      additionalProperties: false,
    },
    readOnly: true,
    execute: () => {
      throw new Error("give the name of a tool that tool_search has loaded: { name: '…', arguments: { … } }")
    },
  }) as Tool
}

/** A call of the dispatcher as a call of the tool that it names: what is checked, approved, guarded, shown and kept. */
export function unwrapCall(call: ToolCall): ToolCall {
  if (call.function.name !== dispatcherName || call.hosted) return call
  const { name, arguments: given } = readObject(call.function.arguments) ?? {}
  if (typeof name !== 'string' || name.trim() === '' || name === dispatcherName) return call
  // Some models write the inner object as a text.
  const inner = typeof given === 'string' ? readObject(given) : asObject(given)
  if (inner === null) return call
  return { ...call, function: { name, arguments: JSON.stringify(inner) }, dispatched: true }
}

const wrapped = new WeakMap<Message, Message>()

/** The transcript as the model wrote it. The same object for the same message, because providers know messages by identity. */
export function wrapMessages(messages: readonly Message[]): readonly Message[] {
  return messages.map((message) => {
    if (message.role !== 'assistant' || !message.tool_calls?.some(({ dispatched }) => dispatched))
      return message
    const known = wrapped.get(message) ?? wrapMessage(message)
    wrapped.set(message, known)
    return known
  })
}

function wrapMessage(message: AssistantMessage): AssistantMessage {
  return { ...message, tool_calls: message.tool_calls?.map(wrapCall) ?? [] }
}

function wrapCall(call: ToolCall): ToolCall {
  if (!call.dispatched) return call
  const { dispatched: _dispatched, ...rest } = call
  const { name, arguments: text } = call.function
  // What shields have put in place of arguments is no JSON.
  const inner = readObject(text) === null ? JSON.stringify({ text }) : text
  const whole = `{"name":${JSON.stringify(name)},"arguments":${inner}}`
  return { ...rest, function: { name: dispatcherName, arguments: whole } }
}

const readObject = (text: string): JsonObject | null => asObject(parseJsonOr(text, undefined))
