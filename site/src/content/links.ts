import { statSync } from 'node:fs'
import { posix } from 'node:path'
import { addresses, root } from './package.ts'

/** Files of the package that pages link to or show, and that are no pages: they are published as they are. */
export interface LinkedFiles {
  add(path: string): void
}

interface Places {
  /** The id of the page that is made of a file. */
  pageOf: ReadonlyMap<string, string>
  files: LinkedFiles
}

/**
 * Makes the links of a Markdown file lead to the pages of the site: to HTML (`/docs/tools/`), or to Markdown (`/docs/tools.md`). Code
 * stays as it is.
 *
 * @throws Error where a link leads to nothing
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

/** Where a page is; the front page has the id `index`. */
export function toAddress(id: string, form: 'html' | 'md'): string {
  if (form === 'md') return `${addresses.base}${id}.md`
  return id === 'index' ? addresses.base : `${addresses.base}${id}/`
}

function locateFile(path: string, from: string, files: LinkedFiles): string {
  const found = statSync(root + path, { throwIfNoEntry: false })
  if (found === undefined) throw new Error(`${from} links to ${path}, which is not there.`)
  const isPicture = /\.(svg|webp|png)$/.test(path)
  if (!isPicture && addresses.repository !== '')
    return `${addresses.repository}/${found.isDirectory() ? 'tree' : 'blob'}/main/${path}`
  files.add(path)
  return `${addresses.base}files/${published(path, found.isDirectory())}`
}

/** The name that a file has on the site: hosts know how to show text, and not every one how to show TypeScript. */
export function published(path: string, isFolder: boolean): string {
  if (isFolder) return `${path}/`
  return /\.(svg|webp|png|json|txt)$/.test(path) ? path : `${path}.txt`
}
