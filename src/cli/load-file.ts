import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { CliError } from './cli-error.js'

/** A text file that the person named. Throws a CliError that says for which option, and what is wrong with it. */
export async function loadFile(path: string, cwd: string, option: string): Promise<string> {
  try {
    return await readFile(resolve(cwd, path), 'utf8')
  } catch (error) {
    throw new CliError('unreadable_file', `${option}: ${describeReadError(error, path)}`, option, {
      cause: error,
    })
  }
}

/** `there is no file 'x'.`, and so on. */
export function describeReadError(error: unknown, path: string): string {
  switch (getErrorCode(error)) {
    case 'ENOENT':
    case 'ENOTDIR':
      return `there is no file '${path}'.`
    case 'EISDIR':
      return `'${path}' is a folder; name a file in it.`
    case 'EACCES':
    case 'EPERM':
      return `'${path}' may not be read by you.`
    default:
      return `'${path}' cannot be read: ${error instanceof Error ? error.message : String(error)}`
  }
}

export function getErrorCode(error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined
}
