import type { Json } from '../../../machines/agent/json.js'
import { readProperty } from '../../core/base/json.js'
import { defineTool } from '../../core/tools/define-tool.js'
import type { Tool } from '../../core/tools/tool.js'
import { stripInvisible } from './plain-text.js'
import { readResult } from './read-result.js'
import { type Asker, listContents } from './resources.js'
import type { McpToolParts } from './to-tool.js'

/** The name for `needsApproval`. Tool names have no slash, so no tool of the server has this name. */
export const resourceToolName = 'resources/read'

const maxListed = 200

/** A tool that lists and reads the resources of a server. */
export function createResourceTool(
  name: string,
  { server, options: { needsApproval, trustAnnotations } }: McpToolParts,
  ask: Asker,
): Tool {
  return defineTool({
    name,
    description: `Reads a resource of the MCP server '${server}' by its uri. Without a uri, it lists the resources.`,
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
    const [uri, title, about, type] = ['uri', 'name', 'description', 'mimeType'].map((key) => {
      const value = readProperty(resource, key)
      return typeof value === 'string' ? stripInvisible(value).trim() : ''
    })
    return [uri, title, type, about].filter(Boolean).join(' · ')
  })
  const isCut = listed.length > maxListed || typeof nextCursor === 'string'
  if (isCut) lines.push('There are more.')
  return lines.length === 0 ? 'There are no resources.' : lines.join('\n')
}
