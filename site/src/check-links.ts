import { existsSync, readdirSync, readFileSync } from 'node:fs'

/** Checks every internal link, image, script and style sheet of the pages in a folder, including anchors. */
export async function checkLinks(
  folder: string,
  base: string,
): Promise<{ broken: string[]; checked: number }> {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.html'),
  )
  const pages = new Map(
    names.map((name) => [name.replaceAll('\\', '/'), readFileSync(folder + name, 'utf8')]),
  )
  const anchors = new Map<string, Set<string>>()
  const anchorsOf = (name: string): Set<string> => {
    const known =
      anchors.get(name) ??
      new Set(Array.from((pages.get(name) ?? '').matchAll(/\sid="([^"]+)"/g), ([, id = '']) => id))
    anchors.set(name, known)
    return known
  }
  /** Grouped by target, because a link in the head occurs on every page. */
  const broken = new Map<string, string[]>()
  let checked = 0
  for (const [name, html] of pages) {
    for (const [, value = ''] of html.matchAll(/<[^>]*?\s(?:href|src)="([^"]*)"/g)) {
      if (/^([a-z]+:|\/\/)/i.test(value) || value === '') continue
      checked += 1
      const { pathname, hash } = new URL(
        value.replaceAll('&amp;', '&'),
        `http://site${base}${name.replace(/index\.html$/, '')}`,
      )
      const path = decodeURIComponent(pathname)
      const target = path.startsWith(base) ? path.slice(base.length).replace(/(^|\/)$/, '$1index.html') : ''
      const isThere = pages.has(target) || (target !== '' && existsSync(folder + target))
      const hasAnchor =
        hash === '' || !pages.has(target) || anchorsOf(target).has(decodeURIComponent(hash.slice(1)))
      if (!isThere || !hasAnchor) broken.set(value, [...(broken.get(value) ?? []), name])
    }
  }
  const messages = [...broken].map(
    ([to, from]) => `${to}, from ${from[0]}${from.length > 1 ? ` and ${from.length - 1} more` : ''}`,
  )
  return { broken: messages, checked }
}
