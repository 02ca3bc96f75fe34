import { access, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { StatewrightError } from '../core/base/errors.js'
import { badUsageError, type CliError } from './cli-error.js'
import { getErrorCode, describeReadError } from './load-file.js'
import { importTypeScript, isTypeScript } from './load-typescript.js'

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
