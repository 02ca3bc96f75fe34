import type { ToolEntry } from '../core/tools/tool-set.js'
import { CliError } from './cli-error.js'
import { loadModule } from './load-module.js'

const expected = 'Its default export must be a list of tools: export default [defineTool({ … })].'

/**
 * Loads the tools of a module: its default export, a list of tools or of named groups (`{ group, args }`). The agent checks
 * each tool. Throws a CliError with the problem of the file or its exports.
 */
export async function loadTools(path: string, cwd: string): Promise<readonly ToolEntry[]> {
  const module = await loadModule(path, cwd, badToolsError)
  const tools = module.default
  if (Array.isArray(tools)) return tools as ToolEntry[]
  if (tools !== undefined)
    throw badToolsError(`'${path}' has ${describeKind(tools)} as its default export. ${expected}`)
  const names = Object.keys(module)
  const exported =
    names.length === 0 ? 'exports nothing' : `exports ${names.join(', ')} but has no default export`
  throw badToolsError(`'${path}' ${exported}. ${expected}`)
}

function describeKind(value: unknown): string {
  if (value === null) return 'null'
  if (typeof value === 'object' && 'execute' in value) return 'a single tool'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

function badToolsError(message: string, cause?: unknown): CliError {
  return new CliError('bad_tools', `--tools: ${message}`, '--tools', { cause })
}
