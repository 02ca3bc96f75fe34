import { access, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { CliError } from './cli-error.js'
import { codeOf, whyUnreadable } from './load-file.js'

/**
 * What a module that the person named exports. Throws a CliError that says what is wrong with the file.
 * `refuse` makes it, so that it names the option.
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
    throw refuse(whyUnreadable(error, path), error)
  }
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
