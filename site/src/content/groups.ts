import { readFileSync } from 'node:fs'
import { root } from './package.ts'

/** Whether a group has the tutorial or the guides that most people need. */
export const isMainGroup = (label: string): boolean => /^(Tutorial|Guides)$/.test(label)

/** The groups of docs/README.md, in its order. */
export function listGroups() {
  const map = readFileSync(`${root}docs/README.md`, 'utf8')
  return map
    .split('\n## ')
    .slice(1)
    .flatMap((section) => {
      const [label = ''] = section.split('\n')
      const pages = Array.from(
        section.matchAll(/^\| \[([^\]]+)\]\(([a-z-]+)\.md\) \|/gm),
        ([, name = '', page = '']) => ({
          label: `${name[0]?.toUpperCase()}${name.slice(1)}`,
          slug: `docs/${page}`,
        }),
      )
      return pages.length === 0 ? [] : [{ label, items: pages }]
    })
}
