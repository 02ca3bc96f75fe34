import type { Json } from '../../../machines/agent/json.js'
import type { McpConnection } from './mcp-connection.js'

/** Tools of one server. No model makes sense of more. */
const maxTools = 1_000

/** Pages of a list, for servers whose pages are empty. */
const maxPages = 100

/**
 * The whole list of a server's tools, as the server sent it. A list without end, or of more than `maxChars` characters
 * of JSON, is cut with a warning.
 */
export async function listTools(
  connection: McpConnection,
  maxChars: number,
  warn: (warning: string) => void,
): Promise<Json[]> {
  const tools: Json[] = []
  let size = 0
  let cursor: string | undefined
  for (let page = 0; page < maxPages; page += 1) {
    // oxlint-disable-next-line no-await-in-loop -- where the next page is stands on this one
    const result = await connection.listTools(cursor)
    const listed = Array.isArray(result.tools) ? result.tools.filter(isSerializable) : []
    size += JSON.stringify(listed).length
    if (size > maxChars) break
    tools.push(...listed)
    if (tools.length > maxTools) break
    if (typeof result.nextCursor !== 'string' || result.nextCursor === '') return tools
    cursor = result.nextCursor
  }
  warn(`Its list of tools is too long; the first ${Math.min(tools.length, maxTools)} are offered.`)
  return tools.slice(0, maxTools)
}

/** A tool that is nested too deeply for JSON.stringify cannot be offered. */
function isSerializable(tool: Json): boolean {
  try {
    JSON.stringify(tool)
    return true
  } catch {
    return false
  }
}
