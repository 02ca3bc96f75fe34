import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { CliError } from './cli-error.js'
import { getErrorCode } from './load-file.js'

/**
 * Writes a generated file, and makes its folder. A file that is there is replaced only when it begins as this one
 * does: what somebody has written is never lost. Returns its path.
 * @throws {CliError} `unwritable_file`
 */
export async function writeGenerated(
  folder: string,
  name: string,
  text: string,
  firstLine: string,
): Promise<string> {
  const path = join(folder, name)
  const refuse = (why: string, cause?: unknown): CliError =>
    new CliError('unwritable_file', `--emit: ${why}`, '--emit', { cause })
  try {
    await mkdir(folder, { recursive: true })
    const before = await readFile(path, 'utf8').catch(ignoreMissing)
    if (before !== undefined && !before.startsWith(firstLine))
      throw refuse(`'${path}' was not generated, so it is not replaced. Move it, or name another folder.`)
    await writeFile(path, text)
    return path
  } catch (error) {
    if (error instanceof CliError) throw error
    throw refuse(describeWriteError(error, path, folder), error)
  }
}

function ignoreMissing(error: unknown): undefined {
  if (getErrorCode(error) !== 'ENOENT') throw error
}

function describeWriteError(error: unknown, path: string, folder: string): string {
  switch (getErrorCode(error)) {
    case 'EEXIST':
    case 'ENOTDIR':
      return `'${folder}' is no folder.`
    case 'EISDIR':
      return `'${path}' is a folder; there is to be a file of that name.`
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return `'${path}' may not be written by you.`
    default:
      return `'${path}' cannot be written: ${error instanceof Error ? error.message : String(error)}`
  }
}
