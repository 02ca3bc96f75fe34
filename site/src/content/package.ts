import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** The folders of the package and of its site. Each path ends with a slash. */
export const root = fileURLToPath(new URL('../../../', import.meta.url))
export const site = `${root}site/`

interface Manifest {
  exports: Record<string, string | { default: string; node?: string }>
  homepage?: string
  repository?: string | { url: string }
}

const { exports, homepage, repository } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as Manifest

export interface EntryPoint {
  /** The import specifier, such as `statewright/testing`. */
  name: string
  /** The source file, relative to the root. */
  source: string
  /** The folder in TypeDoc's output. */
  folder: string
}

/** The typed entry points, in the order of package.json. */
export const entryPoints: readonly EntryPoint[] = Object.entries(exports).flatMap(([name, target]) => {
  if (typeof target === 'string') return []
  const source = (target.node ?? target.default).replace('./dist/', '').replace(/\.js$/, '.ts')
  return [{ name: name.replace('.', 'statewright'), source, folder: name === '.' ? 'index' : name.slice(2) }]
})

/**
 * The site's address (`homepage` of package.json) and the repository's (`repository`). Both are empty until they are known, so that
 * no address is invented.
 */
export const addresses = {
  origin: homepage ? new URL(homepage).origin : '',
  base: homepage ? new URL(homepage).pathname.replace(/\/?$/, '/') : '/',
  repository: (typeof repository === 'string' ? repository : (repository?.url ?? ''))
    .replace(/^git\+/, '')
    .replace(/\.git$/, ''),
}
