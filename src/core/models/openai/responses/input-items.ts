import type { ContentPart } from '../../../../../machines/agent/messages.js'
import type { WireMessage } from '../wire-messages.js'
import { isApprovalRequest } from './response-calls.js'

type InputItem = Readonly<Record<string, unknown>>

interface WireCall {
  id: string
  function: { name: string; arguments: string }
}

/** What a message of a chat is in the Responses API. `isStored`: the provider keeps its answers, and knows items by their ids. */
export function toInputItems(message: WireMessage, isStored: boolean): readonly InputItem[] {
  const { role, content } = message
  if (Array.isArray(message['items'])) return keepSendable(message['items'] as InputItem[], isStored)
  if (role === 'tool')
    return [{ type: 'function_call_output', call_id: message['tool_call_id'], output: toInputParts(content) }]
  const said = content === null || content === undefined ? [] : [{ role, content: toInputParts(content) }]
  const calls = (message['tool_calls'] ?? []) as readonly WireCall[]
  return [
    ...said,
    ...calls.map(({ id, function: called }) => ({ type: 'function_call', call_id: id, ...called })),
  ]
}

/**
 * The items of an answer as the provider takes them back. Reasoning is refused without what it led to: where the answer was
 * cut off before, it stays behind. And reasoning of which a provider that stores nothing gave neither its words nor its
 * encrypted form is nothing that could go back; then what came with it goes without its ids, which would ask for it.
 */
function keepSendable(all: readonly InputItem[], isStored: boolean): readonly InputItem[] {
  const items = all.slice(0, all.findLastIndex((item) => !isReasoning(item)) + 1)
  const isLost = (item: InputItem) =>
    isReasoning(item) && !item['encrypted_content'] && isEmpty(item['content'])
  if (isStored || !items.some(isLost)) return items
  return items.filter((item) => !isLost(item)).map(stripId)
}

/** What is asked is answered by its id. */
function stripId(item: InputItem): InputItem {
  const { id: _id, ...rest } = item
  return isApprovalRequest(item) ? item : rest
}

function isReasoning({ type }: InputItem): boolean {
  return type === 'reasoning'
}

function isEmpty(value: unknown): boolean {
  return !Array.isArray(value) || value.length === 0
}

function toInputParts(content: unknown): unknown {
  return Array.isArray(content) ? content.map(toInputPart) : content
}

function toInputPart(part: ContentPart): InputItem {
  switch (part.type) {
    case 'text':
      return { type: 'input_text', text: part.text }
    case 'image_url': {
      const { url, detail = 'auto' } = part.image_url
      return { type: 'input_image', image_url: url, detail }
    }
    case 'file':
      return { type: 'input_file', ...part.file }
    default:
      return { ...part }
  }
}
