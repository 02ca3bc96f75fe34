import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { CliError } from './cli-error.js'

/** Reads a text file that the user named. Throws a CliError with the option and the problem. */
export async function loadFile(path: string, cwd: string, option: string): Promise<string> {
  try {
    return await readFile(resolve(cwd, path), 'utf8')
  } catch (error) {
    throw new CliError('unreadable_file', `${option}: ${describeReadError(error, path)}`, option, {
      cause: error,
    })
  }
}

/** Why a file cannot be read: `there is no file 'x'.` */
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
