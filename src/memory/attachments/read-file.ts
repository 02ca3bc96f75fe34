import { constants } from 'node:fs'
import { type FileHandle, lstat, open, realpath } from 'node:fs/promises'
import { isAbsolute, relative, resolve, sep } from 'node:path'
import { AttachmentError, type AttachmentErrorCode } from './attachment-error.js'
import { collectBytes, tooLargeError } from './collect-bytes.js'
import type { AttachmentLimits } from './attachment-limits.js'

/** The path is resolved when it is opened, so it must not be a link; and opening must not wait for a pipe's writer. */
const flags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0)

/** A regular file, at most `maxBytes` of it, inside of `root`. */
export async function readFile(path: string, name: string, limits: AttachmentLimits): Promise<Uint8Array> {
  try {
    const real = await locateFile(path, name, limits.root)
    // Before it is opened: opening a device can do something.
    const before = await lstat(real)
    if (!before.isFile()) throw notAFileError(name)
    const handle = await open(real, flags)
    try {
      return await readHandle(handle, before, name, limits.maxBytes)
    } finally {
      await handle.close()
    }
  } catch (error) {
    throw toAttachmentError(error, name)
  }
}

async function readHandle(
  handle: FileHandle,
  before: { ino: number; dev: number },
  name: string,
  maxBytes: number,
): Promise<Uint8Array> {
  const stats = await handle.stat()
  // Another file than the one that was located: it was exchanged in between.
  if (!stats.isFile() || stats.ino !== before.ino || stats.dev !== before.dev) throw notAFileError(name)
  const refusal = () => tooLargeError(name, maxBytes)
  if (stats.size > maxBytes) throw refusal()
  // Counted all the same: some files have no size, and others grow.
  return await collectBytes(handle.createReadStream({ autoClose: false }), maxBytes, refusal)
}

async function locateFile(path: string, name: string, root: string | undefined): Promise<string> {
  if (root === undefined) return await realpath(path)
  const base = await realpath(root)
  const wanted = resolve(root, path)
  // As it is written first, so that nothing is learned about files outside.
  if (!isInside(resolve(root), wanted) && !isInside(base, wanted)) throw outsideRootError(name)
  const real = await realpath(wanted)
  if (!isInside(base, real)) throw outsideRootError(name)
  return real
}

function isInside(folder: string, path: string): boolean {
  const way = relative(folder, path)
  return way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way)
}

function outsideRootError(name: string): AttachmentError {
  return new AttachmentError('outside_root', name, 'is outside of the folder that attachments are read from.')
}

function notAFileError(name: string): AttachmentError {
  return new AttachmentError(
    'not_a_file',
    name,
    'is no regular file. Folders, devices and pipes are not read.',
  )
}

const failures: Record<string, [AttachmentErrorCode, string]> = {
  ENOENT: ['not_found', 'does not exist. Check the path.'],
  ENOTDIR: ['not_found', 'does not exist. Check the path.'],
  ENAMETOOLONG: ['not_found', 'does not exist: its path is too long.'],
  ELOOP: ['not_found', 'is a symbolic link that leads nowhere.'],
  EISDIR: ['not_a_file', 'is a folder.'],
  ENXIO: ['not_a_file', 'is no regular file.'],
  EACCES: ['unreadable', 'may not be read by this process.'],
  EPERM: ['unreadable', 'may not be read by this process.'],
  ERR_INVALID_ARG_VALUE: ['invalid_attachment', 'has a path that no file can have.'],
}

function toAttachmentError(error: unknown, name: string): AttachmentError {
  if (error instanceof AttachmentError) return error
  const { code } = error as NodeJS.ErrnoException
  const [kind, message] = failures[code ?? ''] ?? ['unreadable', `cannot be read (${code ?? String(error)}).`]
  return new AttachmentError(kind, name, message, { cause: error })
}
