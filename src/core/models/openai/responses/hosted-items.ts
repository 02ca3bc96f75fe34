import type { JsonObject } from '../../../../../machines/agent/json.js'
import { asText } from '../../as-json.js'
import type { HostedCall } from '../../provider.js'
import { isImageCall } from './image-items.js'

/** Tells the calls of tools that the provider itself runs: each once when it begins, and once when it has ended. */
export function createHostedItemTracker() {
  const calls = new Map<string, { id: string; hasEnded: boolean }>()

  return {
    /** What is to be told of an item at a place of the output, which has ended or not. */
    tell(item: JsonObject, at: number, hasEnded: boolean): HostedCall[] {
      const name = findHostedName(item)
      // By its place: ids may change on the way.
      const key = `${at} ${name ?? ''}`
      const known = calls.get(key)
      if (name === null || known?.hasEnded) return []
      const id = known?.id ?? (asText(item.id) || `hosted_${at + 1}`)
      calls.set(key, { id, hasEnded })
      const begins = known ? [] : [{ id, name, item: null }]
      if (!hasEnded) return begins
      // The picture is told with the message.
      const { result: _picture, ...told } = item
      return [...begins, { id, name, item: isImageCall(item) ? told : item }]
    },
  }
}

/** `web_search`, `code_interpreter`, `shortener.create_url` of an MCP server; null for what is no such call. */
function findHostedName({ type, name, server_label: server }: JsonObject): string | null {
  const kind = asText(type)
  if (!kind.endsWith('_call') || kind === 'function_call' || kind === 'custom_tool_call') return null
  if (kind === 'mcp_call') return [asText(server), asText(name)].filter(Boolean).join('.') || 'mcp'
  return kind.slice(0, -'_call'.length)
}
