import { access, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { ToolEntry } from '../tools/tool-set.js'
import { CliError } from './cli-error.js'
import { codeOf, whyUnreadable } from './load-file.js'

const expected = 'Its default export must be a list of tools: export default [defineTool({ … })].'

/**
 * The tools of a module: its default export, a list of tools or of named groups (`{ group, args }`). Whether each is
 * a tool is checked by the agent. Throws a CliError that says what is wrong with the file or what it exports instead.
 */
export async function loadTools(path: string, cwd: string): Promise<readonly ToolEntry[]> {
  const file = resolve(cwd, path)
  try {
    await access(file)
    if ((await stat(file)).isDirectory()) throw Object.assign(new Error('A folder.'), { code: 'EISDIR' })
  } catch (error) {
    throw refuse(whyUnreadable(error, path), error)
  }
  const module = await load(file, path)
  const tools = module.default
  if (Array.isArray(tools)) return tools as ToolEntry[]
  if (tools !== undefined) throw refuse(`'${path}' has ${kindOf(tools)} as its default export. ${expected}`)
  const names = Object.keys(module)
  const exported =
    names.length === 0 ? 'exports nothing' : `exports ${names.join(', ')} but has no default export`
  throw refuse(`'${path}' ${exported}. ${expected}`)
}

async function load(file: string, path: string): Promise<Record<string, unknown>> {
  try {
    return (await import(pathToFileURL(file).href)) as Record<string, unknown>
  } catch (error) {
    if (noModule.test(String(codeOf(error)))) {
      const hint = /\.[cm]?tsx?$/.test(file)
        ? `Node ${process.versions.node} cannot load TypeScript: use Node 22.18 or later, or compile it to .js first.`
        : 'Name a .js or .mjs module.'
      throw refuse(`'${path}' cannot be loaded. ${hint}`, error)
    }
    throw refuse(`'${path}' cannot be loaded: ${whatWentWrong(error, path)}`, error)
  }
}

/** What Node's loader says of a file that is no JavaScript. */
const noModule = /^ERR_(UNKNOWN_FILE_EXTENSION|IMPORT_(ATTRIBUTE|ASSERTION_TYPE)_MISSING)$/

/** Node says where a module's syntax is wrong only when it runs or checks it itself. */
function whatWentWrong(error: unknown, path: string): string {
  if (!(error instanceof Error)) return String(error)
  const hint = error.name === 'SyntaxError' ? `. To see where: node --check '${path}'` : ''
  return `${error.name}: ${error.message}${hint}`
}

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (typeof value === 'object' && 'execute' in value) return 'a single tool'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

function refuse(message: string, cause?: unknown): CliError {
  return new CliError('bad_tools', `--tools: ${message}`, '--tools', { cause })
}
