import type { Json, JsonObject } from '../../../../machines/agent/json.js'
import { readProperty } from '../../../core/base/json.js'
import type { HistoryMessage } from '../../../core/sessions/input-history.js'
import type { McpServer } from '../mcp-server.js'
import { toParts } from '../read-result.js'
import { askServer } from './server-asker.js'

/**
 * The messages of a prompt that a server keeps: what `run` takes, as long as the last one is the user's. They are the server's
 * words in the user's name: use prompts only of servers that you would let speak for your users.
 *
 * @example
 * const server = await mcpTools({ url: 'https://mcp.example.com' })
 * agent.run(await mcpPrompt(server, 'review', { language: 'TypeScript' }))
 * @throws {UsageError} `invalid_argument`
 * @throws {StatewrightError} `mcp_failed`, when the server does not know the prompt, or is away
 */
export async function mcpPrompt(
  server: McpServer,
  name: string,
  args: Readonly<Record<string, string>> = {},
): Promise<HistoryMessage[]> {
  const params: JsonObject = { name, arguments: { ...args } }
  const { messages } = await askServer('mcpPrompt(server)', server, 'prompts/get', params)
  return Array.isArray(messages) ? messages.map(toMessage) : []
}

function toMessage(message: Json): HistoryMessage {
  const parts = toParts(readProperty(message, 'content') as Json)
  if (readProperty(message, 'role') !== 'assistant') return { role: 'user', content: parts }
  const words = parts.flatMap((part) => (part.type === 'text' ? [part.text] : []))
  return { role: 'assistant', content: words.join('\n') }
}
