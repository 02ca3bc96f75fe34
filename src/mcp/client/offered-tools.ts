import type { Json } from '../../../machines/agent/json.js'
import type { McpConnection } from './mcp-connection.js'
import { readProperty } from '../../core/base/json.js'
import type { Tool } from '../../core/tools/tool.js'
import type { McpCommonOptions } from './mcp-options.js'
import { quoteText } from './plain-text.js'
import { findToolFault, type McpToolParts, toTool } from './to-tool.js'
import { sha256 } from '../../../guards/lib/sha256.js'

/** More tools than a model can use. */
const maxTools = 1_000

/** Limits lists with empty pages. */
const maxPages = 100

/**
 * Reads all pages of a server's tool list. An endless list, or one of more than `maxChars` characters of JSON, is cut
 * with a warning.
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

/** JSON.stringify fails for very deep nesting. */
function isSerializable(tool: Json): boolean {
  try {
    JSON.stringify(tool)
    return true
  } catch {
    return false
  }
}

/** Creates the usable tools, and warns about each other tool. */
export function createOfferedTools(
  listed: readonly Json[],
  names: ToolNames,
  maker: McpToolParts & { options: Pick<McpCommonOptions, 'only' | 'except'> },
  warn: (warning: string) => void,
): Tool[] {
  const { only, except = [] } = maker.options
  const seen = new Set<string>()
  const tools: Tool[] = []
  for (const entry of listed) {
    const toolName = readProperty(entry, 'name')
    if (typeof toolName !== 'string' || toolName === '') {
      warn('A tool without a name is left out.')
    } else if (seen.has(toolName)) {
      warn(`A second tool named ${quoteText(toolName)} is left out.`)
    } else {
      seen.add(toolName)
      if (except.includes(toolName) || only?.includes(toolName) === false) continue
      const fault = findToolFault(entry, maker)
      const name = fault === undefined ? names.findName(toolName) : undefined
      if (name !== undefined) tools.push(toTool(entry, toolName, name, maker))
      else warn(`Its tool ${quoteText(toolName)} is left out: it ${fault ?? 'comes after too many others'}.`)
    }
  }
  for (const missing of [...(only ?? []), ...except].filter((name) => !seen.has(name))) {
    warn(`It has no tool ${quoteText(missing)}.`)
  }
  return tools
}

/** The length that providers accept. */
const maxLength = 64

/** Characters of the server's name in the names of its tools. */
const maxPrefix = 32

/** Bounds the memory for a server that keeps changing its list. */
const maxNames = 10_000

/**
 * Names for the model: `server_tool`, of letters, digits, `_` and `-`. A name is never reassigned, so a different tool
 * cannot receive its calls.
 */
export class ToolNames {
  readonly #prefix: string
  readonly #names = new Map<string, string>()
  readonly #taken = new Set<string>()

  constructor(server: string) {
    this.#prefix = fitName(server, maxPrefix).replaceAll(/^_+|_+$/g, '') || 'mcp'
  }

  /** Undefined if no names are left. */
  findName(tool: string): string | undefined {
    const known = this.#names.get(tool)
    if (known !== undefined || this.#names.size === maxNames) return known
    const name = this.#createFreeName(`${this.#prefix}_${tool}`)
    this.#names.set(tool, name)
    this.#taken.add(name)
    return name
  }

  #createFreeName(wanted: string): string {
    for (let number = 1; ; number += 1) {
      const ending = number === 1 ? '' : `_${number}`
      const name = fitName(wanted, maxLength - ending.length) + ending
      if (!this.#taken.has(name)) return name
    }
  }
}

/** A long name is cut and gets a hash. */
function fitName(text: string, limit: number): string {
  const name = text.replaceAll(/[^a-zA-Z0-9_-]+/g, '_')
  return name.length <= limit ? name : `${name.slice(0, limit - 9)}_${sha256(text).slice(0, 8)}`
}
