import type { JsonObject } from '../../../../../machines/agent/json.js'
import type {
  AssistantMessage,
  Message,
  ToolCall,
  ToolMessage,
} from '../../../../../machines/agent/messages.js'
import { asText } from '../../../base/values.js'
import { toWellFormed } from '../../well-formed.js'
import type { WireMessage } from '../wire-messages.js'

/** What a provider asks before it calls a tool of an MCP server. */
const approvalRequestType = 'mcp_approval_request'

export function isApprovalRequest({ type }: Readonly<Record<string, unknown>>): boolean {
  return type === approvalRequestType
}

/**
 * The calls that answer wants to be carried out here, or to be approved. The name of one that the provider carries out has a
 * dot: no tool of the agent's own has such a name.
 */
export function readCalls(items: readonly JsonObject[], from: string): ToolCall[] {
  return items.flatMap((item): ToolCall[] => {
    const called = { name: asText(item.name), arguments: readItemArguments(item).trim() || '{}' }
    if (item.type === 'function_call')
      return [{ id: asText(item.call_id) || asText(item.id), type: 'function', function: called }]
    if (!isApprovalRequest(item)) return []
    const server = asText(item.server_label)
    const name = `${server || 'mcp'}.${called.name}`
    return [
      { id: asText(item.id), type: 'function', function: { ...called, name }, hosted: { from, server } },
    ]
  })
}

/** Some servers send the arguments parsed. */
export function readItemArguments(item: JsonObject): string {
  const { type, arguments: given } = item
  if (type !== 'function_call' && !isApprovalRequest(item)) return ''
  return typeof given === 'object' && given !== null ? JSON.stringify(given) : asText(given)
}

/** The item of such a call, with what else its provider said in it. */
export function toApprovalItem(
  call: Pick<ToolCall, 'id' | 'function' | 'hosted'>,
  rest: JsonObject = {},
): JsonObject {
  const { id, function: called, hosted } = call
  const { name, arguments: text } = called
  const server = hosted?.server ?? ''
  const prefix = `${server || 'mcp'}.`
  return {
    server_label: server,
    ...rest,
    type: approvalRequestType,
    id,
    name: name.startsWith(prefix) ? name.slice(prefix.length) : name,
    arguments: text,
  }
}

/** The calls of a message that this provider has asked about. */
export function listHostedCalls(message: AssistantMessage, from: string): ToolCall[] {
  return (message.tool_calls ?? []).filter(({ hosted }) => hosted?.from === from)
}

/** A person's answer, or the one that the end of a run gives: only an approval lets the call run. */
export function toApprovalAnswer({ tool_call_id: id, content, data }: ToolMessage): WireMessage {
  const approve = data?.['approved'] === true
  const answer = { type: 'mcp_approval_response', approval_request_id: id, approve }
  return { role: 'tool', items: [approve ? answer : { ...answer, reason: toWellFormed(content) }] }
}

/** Tells which results are answers to what this provider has asked, message by message. */
export function createAnswerFilter(from: string): (message: Message) => message is ToolMessage {
  let asked: readonly ToolCall[] = []
  return (message): message is ToolMessage => {
    if (message.role === 'assistant') asked = listHostedCalls(message, from)
    return message.role === 'tool' && asked.some(({ id }) => id === message.tool_call_id)
  }
}
