import { mkdtempSync, readdirSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileStore } from '../../src/stores/file/index.js'
import type { Place } from './support.js'

export const makeFolder = (): string => mkdtempSync(join(tmpdir(), 'statewright-store-'))

export const removeFolder = (dir: string): void => rmSync(dir, { recursive: true, force: true })

/** A folder that file stores share. */
export function filePlace(): Place {
  const parent = makeFolder()
  const dir = join(parent, 'made', 'on', 'demand')
  return { open: (now) => fileStore(now ? { dir, now } : { dir }), remove: () => removeFolder(parent) }
}

/** What this process has open in a folder; null where there is no /proc to tell. */
export function openFiles(dir: string): string[] | null {
  if (process.platform !== 'linux') return null
  return readdirSync('/proc/self/fd').flatMap((descriptor) => {
    try {
      const file = readlinkSync(`/proc/self/fd/${descriptor}`)
      return file.startsWith(dir) ? [file] : []
    } catch {
      return [] // The descriptor of this very listing.
    }
  })
}
