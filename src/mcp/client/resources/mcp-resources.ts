import type { Json } from '../../../../machines/agent/json.js'
import type { ContentPart } from '../../../../machines/agent/messages.js'
import type { McpServer } from '../mcp-server.js'
import { toParts } from '../read-result.js'
import { askServer } from './server-asker.js'

/**
 * Reads resources of a server, as parts of a message: texts, and pictures, sound and documents for models that take them. The
 * text of each begins with its address.
 *
 * @example
 * const server = await mcpTools({ url: 'https://mcp.example.com' })
 * const notes = await mcpResources(server, ['notes://today'])
 * agent.run([{ type: 'text', text: 'What is important?' }, ...notes])
 * @throws {UsageError} `invalid_argument`
 * @throws {StatewrightError} `mcp_failed`, when the server refuses one of them or is away
 */
export async function mcpResources(server: McpServer, uris: readonly string[]): Promise<ContentPart[]> {
  const read = (uri: string) => askServer('mcpResources(server)', server, 'resources/read', { uri })
  const contents = await Promise.all(uris.map(async (uri) => listContents(await read(uri))))
  return contents.flat().flatMap(toParts)
}

/** What a server has sent of a resource, as parts of a result are. */
export function listContents({ contents }: { contents?: Json }): Json[] {
  return Array.isArray(contents) ? contents.map((resource): Json => ({ type: 'resource', resource })) : []
}
