import type { Json } from '../../machines/agent/json.js'
import { peek } from '../core/base/to-json.js'
import type { Tool } from '../core/tools/tool.js'
import type { McpCommonOptions } from './options.js'
import { quoted } from './plain-text.js'
import type { ToolNames } from './tool-names.js'
import { type Maker, toolFault, toTool } from './to-tool.js'

/** The tools of a server's list that agents can have, in its order; a warning about each of the others. */
export function offeredTools(
  listed: readonly Json[],
  names: ToolNames,
  maker: Maker & { options: Pick<McpCommonOptions, 'only' | 'except'> },
  warn: (warning: string) => void,
): Tool[] {
  const { only, except = [] } = maker.options
  const seen = new Set<string>()
  const tools: Tool[] = []
  for (const entry of listed) {
    const toolName = peek(entry, 'name')
    if (typeof toolName !== 'string' || toolName === '') {
      warn('A tool without a name is left out.')
    } else if (seen.has(toolName)) {
      warn(`A second tool named ${quoted(toolName)} is left out.`)
    } else {
      seen.add(toolName)
      if (except.includes(toolName) || only?.includes(toolName) === false) continue
      const fault = toolFault(entry)
      const name = fault === undefined ? names.of(toolName) : undefined
      if (name !== undefined) tools.push(toTool(entry, toolName, name, maker))
      else warn(`Its tool ${quoted(toolName)} is left out: it ${fault ?? 'comes after too many others'}.`)
    }
  }
  for (const missing of [...(only ?? []), ...except].filter((name) => !seen.has(name))) {
    warn(`It has no tool ${quoted(missing)}.`)
  }
  return tools
}
