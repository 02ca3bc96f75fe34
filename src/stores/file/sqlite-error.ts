import { statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { StoreError } from '../../core/sessions/store/store-error.js'

/** What SQLite or the file system throws, as an error that says what to do. `file` is the database. */
export function toFileStoreError(error: unknown, file: string): StoreError {
  const { code = '', message } = error as { code?: string; message?: string }
  const folder = dirname(file)
  const options = { cause: error }
  if (isDiskFull(code, folder)) {
    return new StoreError(
      'disk_full',
      `The disk with ${folder} is full. Free some space and try again: the sessions are as they were before.`,
      folder,
      options,
    )
  }
  if (/^(EACCES|EPERM|EROFS)$|^SQLITE_(READONLY|PERM|AUTH)/.test(code)) {
    return new StoreError(
      'read_only',
      `Sessions cannot be written to ${folder}. Let this user write to the folder and the files in it, or choose ` +
        'another folder.',
      folder,
      options,
    )
  }
  // The statements and values are always the same: when they do not fit (3091: a text for a number), the tables are not ours.
  if (/^SQLITE_(CORRUPT|NOTADB|ERROR|CONSTRAINT)|_3091$/.test(code)) {
    return new StoreError(
      'corrupt_log',
      `${file} is damaged, or is no database (${message}). Restore it from a backup, or move it away to begin anew.`,
      file,
      options,
    )
  }
  if (/^SQLITE_(BUSY|LOCKED)/.test(code)) {
    return new StoreError(
      'store_unavailable',
      `Another process has kept ${file} locked for seconds. See what it does, then try again.`,
      file,
      options,
    )
  }
  return new StoreError(
    'store_unavailable',
    `${file} cannot be used: ${message ?? String(error)}. See that the folder exists and is on a local disk, or ` +
      'choose another.',
    file,
    options,
  )
}

/** On a full disk SQLite reports some failures, of its index of the write-ahead log for one, as a plain I/O error. */
function isDiskFull(code: string, folder: string): boolean {
  if (code === 'SQLITE_FULL' || code === 'ENOSPC' || code === 'EDQUOT') return true
  if (!code.startsWith('SQLITE_IOERR')) return false
  try {
    return statfsSync(folder).bavail === 0
  } catch {
    return false
  }
}
