import type { Json, JsonObject } from '../../../machines/agent/json.js'
import type { ContentPart } from '../../../machines/agent/messages.js'
import { type ArgumentRule, expectArgument } from '../../core/base/values.js'
import type { McpServer } from './mcp-options.js'
import { toParts, readResult } from './read-result.js'
import { readProperty, readText } from '../../core/base/json.js'
import type { HistoryMessage } from '../../core/sessions/input-history.js'
import { describeError, StatewrightError } from '../../core/base/errors.js'
import { defineTool } from '../../core/tools/define-tool.js'
import type { Tool } from '../../core/tools/tool.js'
import { stripInvisible } from './plain-text.js'
import type { McpToolParts } from './to-tool.js'

/**
 * Reads resources from a server as message parts: text, and images, audio and documents for models that accept them.
 * The text of each part starts with the address of the resource.
 *
 * @example
 * const server = await mcpTools({ url: 'https://mcp.example.com' })
 * const notes = await mcpResources(server, ['notes://today'])
 * agent.run([{ type: 'text', text: 'What is important?' }, ...notes])
 * @throws {UsageError} `invalid_argument`
 * @throws {StatewrightError} `mcp_failed`, if the server refuses a resource or cannot be reached
 */
export async function mcpResources(server: McpServer, uris: readonly string[]): Promise<ContentPart[]> {
  const call = 'mcpResources(server)'
  expectArgument(call, server, ofMcpTools)
  expectArgument('mcpResources(server, uris)', uris, {
    is: () => Array.isArray(uris) && uris.every((uri) => typeof uri === 'string'),
    phrase: 'a list of addresses',
  })
  const read = (uri: string) => askServer(call, server, 'resources/read', { uri })
  const contents = await Promise.all(uris.map(async (uri) => listContents(await read(uri))))
  return contents.flat().flatMap(toParts)
}

function listContents({ contents }: { contents?: Json }): Json[] {
  return Array.isArray(contents) ? contents.map((resource): Json => ({ type: 'resource', resource })) : []
}

/**
 * Gets the messages of a server's prompt, as input for `run`. The last message must be the user's. The server writes them
 * in the user's name, so use only prompts from trusted servers.
 *
 * @example
 * const server = await mcpTools({ url: 'https://mcp.example.com' })
 * agent.run(await mcpPrompt(server, 'review', { language: 'TypeScript' }))
 * @throws {UsageError} `invalid_argument`
 * @throws {StatewrightError} `mcp_failed`, if the server does not know the prompt or cannot be reached
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

type Asker = (method: string, params: JsonObject, signal?: AbortSignal) => Promise<JsonObject>

const askers = new WeakMap<object, Asker>()

export function registerAsker(server: object, ask: Asker): void {
  askers.set(server, ask)
}

const ofMcpTools: ArgumentRule = {
  is: (value) => typeof value === 'object' && value !== null && askers.has(value),
  phrase: 'the return value of mcpTools()',
}

/** Sends a request on behalf of the app. `call` is the function as the caller wrote it. */
async function askServer(
  call: string,
  server: McpServer,
  method: string,
  params: JsonObject,
): Promise<JsonObject> {
  expectArgument(call, server, ofMcpTools)
  try {
    return (await askers.get(server)?.(method, params)) ?? {}
  } catch (error) {
    throw new StatewrightError('mcp_failed', describeError(error), server.name, { cause: error })
  }
}

/** The name for `needsApproval`. It contains a slash, which the names of tools cannot contain. */
export const resourceToolName = 'resources/read'

const maxListed = 200

export function createResourceTool(
  name: string,
  { server, options: { needsApproval, trustAnnotations } }: McpToolParts,
  ask: Asker,
): Tool {
  return defineTool({
    name,
    description: `Reads a resource from the MCP server '${server}' by its uri. Without a uri, it lists the resources.`,
    input: { type: 'object', properties: { uri: { type: 'string' } } },
    readOnly: trustAnnotations,
    needsApproval:
      typeof needsApproval === 'function'
        ? (args: { uri?: string }) => needsApproval(resourceToolName, { ...args })
        : needsApproval === true,
    timeoutMs: 0,
    execute: async ({ uri }: { uri?: string }, { signal }) => {
      if (uri === undefined) return describeList(await ask('resources/list', {}, signal))
      return readResult({ content: listContents(await ask('resources/read', { uri }, signal)) })
    },
  }) as Tool
}

function describeList({ resources, nextCursor }: { resources?: Json; nextCursor?: Json }): string {
  const listed = Array.isArray(resources) ? resources : []
  const lines = listed.slice(0, maxListed).map((resource) => {
    const [uri, title, about, type] = ['uri', 'name', 'description', 'mimeType'].map((key) =>
      stripInvisible(readText(resource, key)).trim(),
    )
    return [uri, title, type, about].filter(Boolean).join(' · ')
  })
  const isCut = listed.length > maxListed || typeof nextCursor === 'string'
  if (isCut) lines.push('There are more resources.')
  return lines.length === 0 ? 'There are no resources.' : lines.join('\n')
}
