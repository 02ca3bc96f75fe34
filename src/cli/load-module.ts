import { access, stat } from 'node:fs/promises'
import { resolve, basename } from 'node:path'
import { pathToFileURL, fileURLToPath } from 'node:url'
import { existsSync } from 'node:fs'
import { StatewrightError } from '../core/base/errors.js'
import { badUsageError, type CliError } from './cli-error.js'
import { getErrorCode, describeReadError } from './load-file.js'
import { loadPeer } from '../core/base/platform.js'

/**
 * Loads a module that the user named. Throws an error with the problem of the file; `refuse` creates it, so that it names the
 * option.
 */
export async function loadModule(
  path: string,
  cwd: string,
  refuse: (message: string, cause?: unknown) => CliError,
): Promise<Record<string, unknown>> {
  const file = resolve(cwd, path)
  try {
    await access(file)
    if ((await stat(file)).isDirectory()) throw Object.assign(new Error('A folder.'), { code: 'EISDIR' })
  } catch (error) {
    throw refuse(describeReadError(error, path), error)
  }
  try {
    const module: unknown = isTypeScript(file)
      ? await importTypeScript(file)
      : await import(pathToFileURL(file).href)
    return module as Record<string, unknown>
  } catch (error) {
    if (notAModuleCode.test(String(getErrorCode(error)))) {
      throw refuse(`'${path}' cannot be loaded. Name a .js, .mjs or .ts module.`, error)
    }
    if (error instanceof StatewrightError && error.code === 'missing_package') {
      throw refuse(`'${path}' cannot be loaded: ${error.message}`, error)
    }
    throw refuse(`'${path}' cannot be loaded: ${describeLoadError(error, path)}`, error)
  }
}

/** The codes of Node's loader for a file that is not JavaScript. */
const notAModuleCode = /^ERR_(UNKNOWN_FILE_EXTENSION|IMPORT_(ATTRIBUTE|ASSERTION_TYPE)_MISSING)$/

/** Node shows the place of a syntax error only when it runs or checks the file itself. */
function describeLoadError(error: unknown, path: string): string {
  if (!(error instanceof Error)) return String(error)
  const hint = error.name === 'SyntaxError' ? `. To see where: node --check '${path}'` : ''
  return `${error.name}: ${error.message}${hint}`
}

/** The module argument of a command that takes at most one. Throws a CliError for more. */
export function expectOneModule(positionals: readonly string[]): string | undefined {
  if (positionals.length <= 1) return positionals[0]
  throw badUsageError(`One MODULE at a time: '${positionals.slice(1).join("', '")}' is too much.`)
}

/** The part of the package jiti that is used here. */
interface Jiti {
  createJiti(
    from: string,
    options: { fsCache: false; interopDefault: false },
  ): { import(file: string): Promise<unknown> }
}

function isTypeScript(file: string): boolean {
  return /\.[cm]?tsx?$/.test(file)
}

/**
 * Imports a TypeScript module. Uses jiti if it is installed: it supports all of TypeScript, and './other.js' for other.ts.
 * Otherwise Node loads it, which from 22.18 on strips types only.
 *
 * @throws {StatewrightError} `missing_package` when only jiti can load it; else what the module throws
 */
async function importTypeScript(file: string): Promise<unknown> {
  const { href } = pathToFileURL(file)
  const jiti = await loadPeer<Jiti>('jiti', `Loading '${file}'`).catch((error: unknown) => {
    if (error instanceof StatewrightError && error.code === 'missing_package') return null
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
      `Node ${process.versions.node} by itself ${why}. Run: npm install jiti (or name a compiled .js).`,
      'jiti',
      { cause: error },
    )
  }
}

/** What Node's TypeScript support lacks, if that caused the error. */
function describeUnsupported(error: unknown): string | null {
  const { code, url = '' } = error as { code?: unknown; url?: string }
  switch (code) {
    case 'ERR_UNKNOWN_FILE_EXTENSION':
      return 'does not load TypeScript'
    case 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX':
      return 'strips types only, and the file uses more of TypeScript'
    case 'ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING':
      return 'does not load TypeScript from packages'
    case 'ERR_MODULE_NOT_FOUND': {
      const source = url.replace(/\.([cm]?)js$/, '.$1ts')
      if (source === url || !existsSync(fileURLToPath(source))) return null
      return `does not find ${basename(url)}, whose source is ${basename(source)}`
    }
    default:
      return null
  }
}
