import { realpathSync, statSync, readFileSync } from 'node:fs'
import { isAbsolute, join, sep } from 'node:path'

/** Why a file cannot be read, in a sentence that begins with a small letter. */
export class FileRefusal extends Error {}

/**
 * The text of a file below a folder. It is refused when its path leaves the folder, also over a link, when it is no regular file,
 * when it has more bytes than `maxBytes`, and when it is no UTF-8 text.
 *
 * @throws {FileRefusal}
 */
export function readContainedText(folder: string, path: string, maxBytes: number): string {
  const real = findContainedFile(folder, path)
  const { size } = statSync(real)
  if (size > maxBytes) throw new FileRefusal(`it has ${size} bytes, of at most ${maxBytes}.`)
  const bytes = readBytes(real)
  if (bytes.length > maxBytes) throw new FileRefusal(`it has ${bytes.length} bytes, of at most ${maxBytes}.`)
  if (bytes.includes(0)) throw new FileRefusal('it is no text.')
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new FileRefusal('it is no UTF-8 text.')
  }
}

function readBytes(path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (error) {
    throw new FileRefusal(`it cannot be opened (${String((error as { code?: unknown }).code)}).`)
  }
}

function findContainedFile(folder: string, path: string): string {
  const leaves =
    path === '' || path.includes('\0') || path.includes('\\') || isAbsolute(path) || /^[a-z]:/i.test(path)
  if (leaves || path.split('/').includes('..'))
    throw new FileRefusal(
      'its path must lead on from the folder: without "..", a leading slash or a backslash.',
    )
  let base: string
  let real: string
  try {
    base = realpathSync(folder)
    real = realpathSync(join(base, path))
  } catch {
    throw new FileRefusal('there is no such file.')
  }
  if (!isInside(base, real)) throw new FileRefusal('a link leads out of the folder.')
  // A pipe or a device would keep the process waiting.
  if (!statSync(real).isFile()) throw new FileRefusal('it is no file.')
  return real
}

/** Whether a real path is a folder, or below it. */
export function isInside(folder: string, path: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep)
}
