import { fileURLToPath } from 'node:url'
import { valueOr } from '../core/base/maybe-promise.js'
import { ConfigError } from '../core/base/errors.js'
import { memoryStore } from '../core/sessions/store/memory-store.js'
import type { SessionStore } from '../core/sessions/store/store.js'

/**
 * Opens the session store at a URL. Each type of store is loaded on demand.
 *
 * - `memory:` keeps sessions as long as the process runs
 * - `file:DIR` or `file:///DIR` is a folder on disk, for Node 22.13 or the package `libsql`. `~` and `%` in `file:DIR`
 *   have no special meaning
 * - `postgres://USER:PASSWORD@HOST:PORT/DATABASE` or `postgresql://…` needs the package `pg`
 *
 * @throws {ConfigError} `invalid_store` for any other URL
 * @throws {StatewrightError} `missing_package` without SQLite or `pg`
 * @throws {StoreError} if the folder cannot be used
 * @example
 * const store = await openStore('file:.sessions')
 */
export async function openStore(url: string): Promise<SessionStore> {
  const [, scheme = '', rest = ''] = /^([a-z][a-z0-9+.-]*):(.*)$/is.exec(url) ?? []
  switch (scheme.toLowerCase()) {
    case 'memory':
      if (rest === '') return memoryStore()
      break
    case 'file': {
      const dir = parseFolder(rest)
      if (dir !== null) return (await import('./file/index.js')).fileStore({ dir })
      break
    }
    case 'postgres':
    case 'postgresql':
      return (await import('./postgres/index.js')).postgresStore({ connectionString: url })
  }
  // The part after the scheme may contain a password.
  throw new ConfigError(
    'invalid_store',
    `${scheme === '' ? 'The text' : `A URL with ${scheme}:`} does not name a session store. Use memory:, file:DIR, ` +
      'file:///DIR or postgres://USER:PASSWORD@HOST/DATABASE.',
    'store',
  )
}

/** The folder of a `file:` URL. Null for other URLs and for a URL without a folder. */
export function findFolder(url: string): string | null {
  return /^file:/i.test(url) ? parseFolder(url.slice('file:'.length)) : null
}

function parseFolder(rest: string): string | null {
  if (rest === '' || rest.includes('\0')) return null
  if (!rest.startsWith('//')) return rest
  return valueOr(() => fileURLToPath(`file:${rest}`), null)
}
