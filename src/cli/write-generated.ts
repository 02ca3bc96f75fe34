import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { CliError } from './cli-error.js'
import { getErrorCode } from './load-file.js'

/**
 * Writes a generated file, and creates its folder. An existing file is replaced only if it begins with `firstLine`, so that a
 * handwritten file is never lost. Returns the path.
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
      return `'${folder}' is not a folder.`
    case 'EISDIR':
      return `'${path}' is a folder, but must be a file.`
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return `'${path}' may not be written by you.`
    default:
      return `'${path}' cannot be written: ${error instanceof Error ? error.message : String(error)}`
  }
}
