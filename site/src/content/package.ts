import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** The folder of the package, and of the site in it; each ends with a slash. */
export const root = fileURLToPath(new URL('../../../', import.meta.url))
export const site = `${root}site/`

interface Manifest {
  exports: Record<string, string | { default: string; node?: string }>
  homepage?: string
  repository?: string | { url: string }
}

const { exports, homepage, repository } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as Manifest

export interface EntryPoint {
  /** What is imported: `statewright/testing`. */
  name: string
  /** Its source, from the root. */
  source: string
  /** Its folder among the pages that TypeDoc writes. */
  folder: string
}

/** The entry points that have types, in the order of package.json. */
export const entryPoints: readonly EntryPoint[] = Object.entries(exports).flatMap(([name, target]) => {
  if (typeof target === 'string') return []
  const source = (target.node ?? target.default).replace('./dist/', '').replace(/\.js$/, '.ts')
  return [{ name: name.replace('.', 'statewright'), source, folder: name === '.' ? 'index' : name.slice(2) }]
})

/**
 * Where the site will be (`homepage` of package.json) and where its repository is (`repository`). Both are empty until they
 * are known: no address is guessed.
 */
export const addresses = {
  origin: homepage ? new URL(homepage).origin : '',
  base: homepage ? new URL(homepage).pathname.replace(/\/?$/, '/') : '/',
  repository: (typeof repository === 'string' ? repository : (repository?.url ?? ''))
    .replace(/^git\+/, '')
    .replace(/\.git$/, ''),
}
