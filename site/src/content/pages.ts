import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { frontPage } from './front-page.ts'
import { published, rewriteLinks, toAddress } from './links.ts'
import { describe, rowsOf, sectionOf, splitTitle } from './markdown.ts'
import { entryPoints, root, site } from './package.ts'

/** A page of the site, generated from one Markdown file. */
export interface Page {
  /** The path, such as `docs/tools`. `index` is the front page. */
  id: string
  /** The source file, relative to the root. Its links are relative to this file. */
  file: string
  title: string
  description: string
  /** Without the heading. Links lead to HTML. */
  html: string
  /** With the heading. Links lead to Markdown. */
  md: string
}

/** Documents outside `docs/`, by their paths on the site. */
const others = {
  'README.md': 'readme',
  'CHANGELOG.md': 'changelog',
  'CONTRIBUTING.md': 'contributing',
  'SECURITY.md': 'security',
  'examples/README.md': 'examples',
  'visualizations/README.md': 'visualizations',
}

/** Package files that pages link to, by their published paths. */
export interface PublishedFile {
  from: string
  to: string
}

let found: { pages: Page[]; files: PublishedFile[] } | undefined

/** All pages, and all files that pages link to. */
export function readPages(): { pages: Page[]; files: PublishedFile[] } {
  return (found ??= collectPages())
}

function collectPages(): { pages: Page[]; files: PublishedFile[] } {
  const sources = listSources()
  const pageOf = new Map(sources.map(({ file, id }) => [file, id]))
  // Only the first screen shows these two, so they are not linked in Markdown.
  const files = new Set(['visualizations/agent.film.svg', 'visualizations/agent.visited.svg'])
  const places = { pageOf, files }
  const pages = sources.map(({ id, file, markdown }): Page => {
    const { title, body } = splitTitle(markdown)
    const [html, md] = (['html', 'md'] as const).map((form) => rewriteLinks(body, file, form, places))
    return { id, file, title, description: describe(body), html: html ?? '', md: `# ${title}\n\n${md}` }
  })
  // Iterating over a Set also visits entries added during the loop, here the files of folders.
  for (const path of files) {
    if (!statSync(root + path).isDirectory()) continue
    const inside = readdirSync(root + path).filter((name) => !/^(\.|node_modules$|package-lock)/.test(name))
    for (const name of inside) files.add(`${path}/${name}`)
    pages.push(listFolder(path, inside, pageOf))
  }
  const plain = [...files].filter((path) => !statSync(root + path).isDirectory())
  return { pages, files: plain.map((from) => ({ from, to: `files/${published(from, false)}` })) }
}

function listFolder(path: string, inside: string[], pageOf: ReadonlyMap<string, string>): Page {
  const links = (form: 'html' | 'md'): string =>
    inside
      .map((name) => {
        const page = pageOf.get(`${path}/${name}`)
        const isFolder = statSync(`${root}${path}/${name}`).isDirectory()
        const address = page
          ? toAddress(page, form)
          : toAddress('files', form).replace(/(\.md|\/)$/, `/${path}/`) + published(name, isFolder)
        return `- [${name}](${address})`
      })
      .join('\n')
  const id = `files/${path}`
  const description = `The files of ${path} in the package.`
  return { id, file: path, title: path, description, html: links('html'), md: `# ${path}\n\n${links('md')}` }
}

interface Source {
  id: string
  file: string
  markdown: string
}

function listSources(): Source[] {
  const documents = readdirSync(`${root}docs`).filter((name) => name.endsWith('.md'))
  const named = documents.map(
    (name) => [`docs/${name}`, name === 'README.md' ? 'docs' : `docs/${name.slice(0, -3)}`] as const,
  )
  const written = [...named, ...Object.entries(others)].map(([file, id]) => ({
    id,
    file,
    markdown: readFileSync(root + file, 'utf8'),
  }))
  return [{ id: 'index', file: 'index.md', markdown: frontPage() }, ...written, ...listReference()]
}

/** TypeDoc's output. The page of an entry point starts with its description in docs/README.md. */
function listReference(): Source[] {
  const folder = `${site}.api`
  if (!existsSync(folder)) throw new Error('The API reference has not been generated. Run build.ts.')
  const map = sectionOf(readFileSync(`${root}docs/README.md`, 'utf8'), 'Entry points and packages')
  const described = new Map(
    rowsOf(map).map(([name = '', has = '', needs = '']) => [name.replaceAll('`', ''), { has, needs }]),
  )
  const entries = new Map(entryPoints.map((entry) => [`${entry.folder}/README.md`, entry]))
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => {
      const markdown = readFileSync(`${folder}/${name}`, 'utf8')
      const file = `site/.api/${name}`
      const id = `api/${name
        .replace(/^index\//, 'statewright/')
        .replace(/\.md$/, '')
        .replace(/(^|\/)README$/, '')}`.replace(/\/$/, '')
      const entry = entries.get(name)
      if (entry === undefined)
        return { id, file, markdown: name === 'README.md' ? listEntries(markdown) : markdown }
      const { has = '', needs = '' } = described.get(entry.name) ?? {}
      const about = [
        has && `${has[0]?.toUpperCase()}${has.slice(1)}.`,
        needs !== '' && needs !== 'nothing' && `Also install: ${needs}.`,
      ]
      const text = about
        .filter(Boolean)
        .join('\n\n')
        .replaceAll(/\]\((?=[a-z-]+\.md)/g, '](/docs/')
      return {
        id,
        file,
        markdown: [
          `# ${entry.name}`,
          rewriteMapLinks(text),
          listMostUsed(entry.folder),
          splitTitle(markdown).body,
        ].join('\n\n'),
      }
    })
}

/** The functions of an entry point that the docs call most often, with their descriptions. */
function listMostUsed(folder: string): string {
  const path = `${site}.api/${folder}/functions`
  if (!existsSync(path)) return ''
  const names = readdirSync(path).map((name) => name.replace(/\.md$/, ''))
  const text = readDocuments()
  const ranked = names
    .map((name) => ({ name, count: text.split(`${name}(`).length - 1 }))
    .filter(({ count }) => count > 1)
    .sort((a, b) => b.count - a.count)
    .slice(0, 8)
  if (names.length < 6 || ranked.length === 0) return ''
  const rows = ranked.map(({ name }) => {
    const { body } = splitTitle(readFileSync(`${path}/${name}.md`, 'utf8'))
    return `| [${name}](functions/${name}.md) | ${describe(body.replaceAll(/^>.*$/gm, ''))
      .split(/(?<=\.)\s/)[0]
      ?.replaceAll('|', '\\|')} |`
  })
  return ['## Most used', '', '| Function | Purpose |', '| --- | --- |', ...rows].join('\n')
}

let documents: string | undefined

const readDocuments = (): string =>
  (documents ??= [
    'README.md',
    ...readdirSync(`${root}docs`).map((name) => `docs/${name}`),
    'examples/README.md',
  ]
    .filter((name) => name.endsWith('.md'))
    .map((name) => readFileSync(root + name, 'utf8'))
    .join('\n'))

/** Rewrites the links of docs/README.md for a page in another folder. */
function rewriteMapLinks(text: string): string {
  return text.replaceAll(
    /\]\(\/docs\/([a-z-]+)\.md/g,
    (_, name: string) => `](${toAddress(`docs/${name}`, 'html').replace(/\/$/, '')}/`,
  )
}

function listEntries(markdown: string): string {
  const named = entryPoints.map(({ name, folder }) => `- [\`${name}\`](${folder}/README.md)`)
  return `${markdown.split('\n## ')[0]}\nThe exports of each entry point, with the comments from the source code.\n\n${named.join('\n')}\n`
}
