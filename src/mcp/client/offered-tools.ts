import type { Json } from '../../../machines/agent/json.js'
import { readProperty } from '../../core/base/json.js'
import type { Tool } from '../../core/tools/tool.js'
import type { McpCommonOptions } from './mcp-options.js'
import { quoteText } from './plain-text.js'
import type { ToolNames } from './mcp-tool-names.js'
import { type McpToolParts, findToolFault, toTool } from './to-tool.js'

/** The tools of a server's list that agents can have, in its order; a warning about each of the others. */
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
