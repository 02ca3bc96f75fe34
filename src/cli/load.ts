import { existsSync } from 'node:fs'
import { access, readFile, stat } from 'node:fs/promises'
import { basename, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { AnyStateMachine } from 'xstate'
import { ConfigError, describeError, StatewrightError } from '../core/base/errors.js'
import { readProperty } from '../core/base/json.js'
import { loadPeer } from '../core/base/platform.js'
import { type ConfigFile, parseConfigFile } from '../core/config/config-file.js'
import type { Agents } from '../core/drive/define-agents.js'
import type { SessionStore } from '../core/sessions/store/store.js'
import type { ToolEntry } from '../core/tools/tool-set.js'
import type { StudioAgent } from '../studio/session-actions.js'
import { assertMachine } from '../testing/errors.js'
import { CliError } from './command.js'

/** Loads files and modules that the user names. Errors name the option and the file. */

/** @throws {CliError} `unreadable_file` */
export async function loadFile(path: string, cwd: string, option: string): Promise<string> {
  return readFile(resolve(cwd, path), 'utf8').catch((cause: unknown) => {
    throw fileError('unreadable_file', option, path, cause)
  })
}

export function fileError(
  code: 'unreadable_file' | 'unwritable_file',
  option: string,
  path: string,
  cause: unknown,
  use: 'read' | 'written' = code === 'unreadable_file' ? 'read' : 'written',
): CliError {
  return new CliError(code, `${option}: ${describeFileError(cause, path, use)}`, option, { cause })
}

/** Explains a file error, as in `there is no file 'x'.` */
function describeFileError(error: unknown, path: string, use: 'read' | 'written'): string {
  const code = String(readProperty(error, 'code'))
  if (code === 'EEXIST') return `'${path}' already exists. Choose another file, or replace it with --force.`
  if (code === 'EISDIR') return `'${path}' is a folder. Choose a file in it.`
  if (['ENOENT', 'ENOTDIR'].includes(code))
    return use === 'read' ? `there is no file '${path}'.` : `there is no folder for '${path}'.`
  if (['EACCES', 'EPERM', 'EROFS'].includes(code))
    return `you do not have permission to ${use === 'read' ? 'read' : 'write'} '${path}'.`
  return `'${path}' cannot be ${use}: ${describeError(error)}`
}

/** @throws {CliError | ConfigError} */
export async function loadConfig(path: string | undefined, cwd: string): Promise<ConfigFile> {
  if (path === undefined) return {}
  const config = parseConfigFile(await loadFile(path, cwd, '--config'), path)
  if (!config.interactive) return config
  throw new ConfigError(
    'invalid_config',
    `Invalid configuration in ${path}:\n  interactive: the command line runs one prompt. Remove the key.`,
    'interactive',
  )
}

export type Refuse = (message: string, cause?: unknown) => CliError

/** `option` is null for an argument, whose message has no prefix. */
export function createRefusal(code: string, option: string | null, subject = option ?? 'MODULE'): Refuse {
  const prefix = option === null ? '' : `${option}: `
  return (message, cause) => new CliError(code, prefix + message, subject, { cause })
}

export async function loadModule(
  path: string,
  cwd: string,
  refuse: Refuse,
): Promise<Record<string, unknown>> {
  const file = resolve(cwd, path)
  try {
    await access(file)
    if ((await stat(file)).isDirectory()) throw Object.assign(new Error('A folder.'), { code: 'EISDIR' })
  } catch (error) {
    throw refuse(describeFileError(error, path, 'read'), error)
  }
  try {
    const module: unknown = /\.[cm]?tsx?$/.test(file)
      ? await importTypeScript(file)
      : await import(pathToFileURL(file).href)
    return module as Record<string, unknown>
  } catch (error) {
    // The codes of Node's loader for a file that is not JavaScript.
    const notAModule = /^ERR_(UNKNOWN_FILE_EXTENSION|IMPORT_(ATTRIBUTE|ASSERTION_TYPE)_MISSING)$/
    if (notAModule.test(String(readProperty(error, 'code'))))
      throw refuse(`'${path}' cannot be loaded. Use a .js, .mjs or .ts module.`, error)
    throw refuse(`'${path}' cannot be loaded: ${describeLoadError(error, path)}`, error)
  }
}

function describeLoadError(error: unknown, path: string): string {
  if (!(error instanceof Error)) return String(error)
  if (isMissingPackage(error)) return error.message
  // Node shows the position of a syntax error only if it runs or checks the file itself.
  const hint = error.name === 'SyntaxError' ? `. To see where: node --check '${path}'` : ''
  return `${error.name}: ${error.message}${hint}`
}

const isMissingPackage = (error: unknown): boolean =>
  error instanceof StatewrightError && error.code === 'missing_package'

interface Jiti {
  createJiti(
    from: string,
    options: { fsCache: false; interopDefault: false },
  ): { import(file: string): Promise<unknown> }
}

/**
 * Uses jiti if it is installed, because jiti supports all of TypeScript and resolves './other.js' to other.ts. Otherwise
 * Node loads the module. Node can strip types since version 22.18.
 * @throws {StatewrightError} `missing_package` if only jiti can load the module, and the errors of the module
 */
async function importTypeScript(file: string): Promise<unknown> {
  const { href } = pathToFileURL(file)
  const jiti = await loadPeer<Jiti>('jiti', `Loading '${file}'`).catch((error: unknown) => {
    if (isMissingPackage(error)) return null
    throw error
  })
  if (jiti !== null) return jiti.createJiti(href, { fsCache: false, interopDefault: false }).import(file)
  try {
    return (await import(href)) as unknown
  } catch (error) {
    const why = describeUnsupported(error)
    if (why === null) throw error
    throw new StatewrightError(
      'missing_package',
      `Node ${process.versions.node} ${why}. Run npm install jiti, or pass a compiled .js file.`,
      'jiti',
      { cause: error },
    )
  }
}

/** The missing TypeScript feature that caused an error in Node's loader. */
function describeUnsupported(error: unknown): string | null {
  const { code, url = '' } = error as { code?: unknown; url?: string }
  if (code !== 'ERR_MODULE_NOT_FOUND') return unsupported[String(code)] ?? null
  const source = url.replace(/\.([cm]?)js$/, '.$1ts')
  if (source === url || !existsSync(fileURLToPath(source))) return null
  return `cannot find ${basename(url)}, whose source is ${basename(source)}`
}

const unsupported: Readonly<Record<string, string>> = {
  ERR_UNKNOWN_FILE_EXTENSION: 'does not load TypeScript on its own',
  ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX: 'only strips types, but the file needs more',
  ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING: 'does not load TypeScript from packages on its own',
}

/** If the default export is a function, `value` is its result. */
async function loadDefaultExport(
  path: string,
  { cwd, store }: { cwd: string; store: SessionStore },
  refuse: Refuse,
): Promise<{ exported: unknown; value: unknown }> {
  const { default: exported } = await loadModule(path, cwd, refuse)
  if (typeof exported !== 'function') return { exported, value: exported }
  try {
    return { exported, value: await (exported as (options: { store: SessionStore }) => unknown)({ store }) }
  } catch (error) {
    throw refuse(`the default export of '${path}' failed: ${describeError(error)}`, error)
  }
}

export async function loadAgent(path: string, cwd: string, store: SessionStore): Promise<StudioAgent> {
  const refuse = createRefusal('bad_agent', '--agent')
  const { exported, value } = await loadDefaultExport(path, { cwd, store }, refuse)
  const { resume, fork, config } = (value ?? {}) as Partial<StudioAgent>
  if (typeof resume === 'function' && typeof fork === 'function' && typeof config === 'object')
    return value as StudioAgent
  const what = exported === undefined ? 'has no default export' : 'has no agent as its default export'
  throw refuse(
    `'${path}' ${what}. Export an agent, or a function that returns one: ` +
      'export default ({ store }) => createAgent({ store, … }).',
  )
}

export async function loadAgents(path: string, cwd: string, store: SessionStore): Promise<Agents> {
  const refuse = createRefusal('bad_agents', '--agents')
  const { value } = await loadDefaultExport(path, { cwd, store }, refuse)
  if (typeof (value as Agents | undefined)?.findAgentFor === 'function') return value as Agents
  throw refuse(
    `'${path}' has no agents as its default export. Export the result of defineAgents, or a function that returns it: ` +
      'export default ({ store }) => defineAgents({ support: createAgent({ store, … }) }).',
  )
}

/** Loads a list of tools, or of named groups (`{ group, args }`). The agent checks each tool. */
export async function loadTools(path: string, cwd: string): Promise<readonly ToolEntry[]> {
  const refuse = createRefusal('bad_tools', '--tools')
  const module = await loadModule(path, cwd, refuse)
  const tools = module.default
  if (Array.isArray(tools)) return tools as ToolEntry[]
  const problem =
    tools === undefined
      ? describeExports(module, ' but has no default export')
      : `has ${describeKind(tools)} as its default export`
  throw refuse(`'${path}' ${problem}. Export a list of tools: export default [defineTool({ … })].`)
}

function describeKind(value: unknown): string {
  if (value === null) return 'null'
  if (typeof value === 'object' && 'execute' in value) return 'a single tool'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

function describeExports(module: object, addition = ''): string {
  const names = Object.keys(module)
  return names.length === 0 ? 'exports nothing' : `exports ${names.join(', ')}${addition}`
}

export const refuseMachine: Refuse = createRefusal('bad_machine', null)

/** Loads the default export of a module, or else the only machine that it exports. */
export async function loadMachine(path: string, cwd: string): Promise<AnyStateMachine> {
  const module = await loadModule(path, cwd, refuseMachine)
  const machines = Object.values(module).filter(
    (each) => typeof each === 'object' && each !== null && '__xstatenode' in each,
  )
  const value = module.default ?? (machines.length === 1 ? machines[0] : undefined)
  if (value === undefined)
    throw refuseMachine(
      `'${path}' ${describeExports(module)}. Export a machine: export default createMachine({ … }).`,
    )
  try {
    assertMachine(value)
  } catch (error) {
    throw refuseMachine(`'${path}': ${describeError(error)}`, error)
  }
  return value as AnyStateMachine
}
