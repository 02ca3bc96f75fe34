import { mkdtempSync, readdirSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileStore } from '../../src/stores/file/index.js'
import type { Place } from './support.js'

export const makeFolder = (): string => mkdtempSync(join(tmpdir(), 'statewright-store-'))

export const removeFolder = (dir: string): void => rmSync(dir, { recursive: true, force: true })

/** A folder that several file stores share. */
export function filePlace(): Place {
  const parent = makeFolder()
  const dir = join(parent, 'made', 'on', 'demand')
  return { open: (now) => fileStore(now ? { dir, now } : { dir }), remove: () => removeFolder(parent) }
}

/** The open files of this process in a folder. Null on systems without /proc. */
export function openFiles(dir: string): string[] | null {
  if (process.platform !== 'linux') return null
  return readdirSync('/proc/self/fd').flatMap((descriptor) => {
    try {
      const file = readlinkSync(`/proc/self/fd/${descriptor}`)
      return file.startsWith(dir) ? [file] : []
    } catch {
      return [] // the descriptor of this directory listing
    }
  })
}
