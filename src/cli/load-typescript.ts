import { existsSync } from 'node:fs'
import { basename } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { StatewrightError } from '../core/base/errors.js'
import { loadPeer } from '../core/base/lazy-load.js'

/** The part of the package jiti that is used here. */
interface Jiti {
  createJiti(
    from: string,
    options: { fsCache: false; interopDefault: false },
  ): { import(file: string): Promise<unknown> }
}

export function isTypeScript(file: string): boolean {
  return /\.[cm]?tsx?$/.test(file)
}

/**
 * Imports a TypeScript module. Uses jiti if it is installed: it supports all of TypeScript, and './other.js' for other.ts.
 * Otherwise Node loads it, which from 22.18 on strips types only.
 *
 * @throws {StatewrightError} `missing_package` when only jiti can load it; else what the module throws
 */
export async function importTypeScript(file: string): Promise<unknown> {
  const { href } = pathToFileURL(file)
  const jiti = await loadPeer<Jiti>('jiti', `Loading '${file}'`).catch((error: unknown) => {
    if (error instanceof StatewrightError && error.code === 'missing_package') return null
    throw error
  })
  if (jiti !== null) return jiti.createJiti(href, { fsCache: false, interopDefault: false }).import(file)
  try {
    return (await import(href)) as unknown
  } catch (error) {
    const why = describeUnsupported(error)
    if (why === null) throw error
    throw new StatewrightError(
      'missing_package',
      `Node ${process.versions.node} by itself ${why}. Run: npm install jiti (or name a compiled .js).`,
      'jiti',
      { cause: error },
    )
  }
}

/** What Node's TypeScript support lacks, if that caused the error. */
function describeUnsupported(error: unknown): string | null {
  const { code, url = '' } = error as { code?: unknown; url?: string }
  switch (code) {
    case 'ERR_UNKNOWN_FILE_EXTENSION':
      return 'does not load TypeScript'
    case 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX':
      return 'strips types only, and the file uses more of TypeScript'
    case 'ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING':
      return 'does not load TypeScript from packages'
    case 'ERR_MODULE_NOT_FOUND': {
      const source = url.replace(/\.([cm]?)js$/, '.$1ts')
      if (source === url || !existsSync(fileURLToPath(source))) return null
      return `does not find ${basename(url)}, whose source is ${basename(source)}`
    }
    default:
      return null
  }
}
