import { statSync } from 'node:fs'
import { posix } from 'node:path'
import { addresses, root } from './package.ts'

/** Package files that pages link to or show but that are not pages. The site publishes them unchanged. */
export interface LinkedFiles {
  add(path: string): void
}

interface Places {
  /** The id of the page for a file. */
  pageOf: ReadonlyMap<string, string>
  files: LinkedFiles
}

/**
 * Rewrites the links of a Markdown file to the site's pages, as HTML (`/docs/tools/`) or Markdown (`/docs/tools.md`). Code stays
 * unchanged.
 *
 * @throws Error for a broken link
 */
export function rewriteLinks(markdown: string, file: string, form: 'html' | 'md', places: Places): string {
  const rewritten = (target: string): string => {
    if (/^([a-z]+:|#|\/)/.test(target)) return target
    const [path = '', anchor] = target.split('#')
    const to = posix.normalize(posix.join(posix.dirname(file), decodeURI(path))).replace(/\/$/, '')
    const hash = anchor === undefined ? '' : `#${anchor}`
    const page = places.pageOf.get(to) ?? places.pageOf.get(`${to}/README.md`)
    if (page !== undefined) return toAddress(page, form) + hash
    return locateFile(to, file, places.files) + hash
  }
  return markdown.replaceAll(
    /(^|\n)(```+)[^]*?\n\2(?=\n|$)|`[^`\n]*`|(?<=\]\()([^)\s]+)(?=\))/g,
    (all: string, _line, _fence, target?: string) => (target === undefined ? all : rewritten(target)),
  )
}

/** The URL of a page. The front page has the id `index`. */
export function toAddress(id: string, form: 'html' | 'md'): string {
  if (form === 'md') return `${addresses.base}${id}.md`
  return id === 'index' ? addresses.base : `${addresses.base}${id}/`
}

function locateFile(path: string, from: string, files: LinkedFiles): string {
  const found = statSync(root + path, { throwIfNoEntry: false })
  if (found === undefined) throw new Error(`${from} links to ${path}, which does not exist.`)
  const isPicture = /\.(svg|webp|png)$/.test(path)
  if (!isPicture && addresses.repository !== '')
    return `${addresses.repository}/${found.isDirectory() ? 'tree' : 'blob'}/main/${path}`
  files.add(path)
  return `${addresses.base}files/${published(path, found.isDirectory())}`
}

/** The published name of a file. Every host serves text, but some do not know TypeScript. */
export function published(path: string, isFolder: boolean): string {
  if (isFolder) return `${path}/`
  return /\.(svg|webp|png|json|txt)$/.test(path) ? path : `${path}.txt`
}
