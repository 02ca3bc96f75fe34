import type { Json } from '../../../../machines/agent/json.js'
import type { ContentPart } from '../../../../machines/agent/messages.js'
import { type ArgumentRule, expectArgument } from '../../../core/base/values.js'
import type { McpServer } from '../mcp-server.js'
import { toParts } from '../read-result.js'
import { askServer, expectServer } from './server-asker.js'

const ofUris: ArgumentRule = {
  is: (value) => Array.isArray(value) && value.every((uri) => typeof uri === 'string'),
  phrase: 'a list of addresses',
}

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
  expectServer('mcpResources(server)', server)
  expectArgument('mcpResources(server, uris)', uris, ofUris)
  const read = (uri: string) => askServer('mcpResources(server)', server, 'resources/read', { uri })
  const contents = await Promise.all(uris.map(async (uri) => listContents(await read(uri))))
  return contents.flat().flatMap(toParts)
}

/** What a server has sent of a resource, as parts of a result are. */
export function listContents({ contents }: { contents?: Json }): Json[] {
  return Array.isArray(contents) ? contents.map((resource): Json => ({ type: 'resource', resource })) : []
}
