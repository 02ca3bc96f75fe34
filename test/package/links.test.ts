import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runsAll } from '../support/extent.js'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** The files that `npm pack` includes. Listing them takes npm seconds, so a sample uses the list's files that are in git. */
function packed(): Set<string> {
  if (!runsAll) {
    const { files } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as { files: string[] }
    const listed = files.map((path) => path.replace(/^!/, ':!'))
    const args = ['ls-files', 'package.json', 'README.md', 'LICENSE', ...listed]
    return new Set(execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim().split('\n'))
  }
  const json = execFileSync('npm', ['pack', '--dry-run', '--json', '--silent', '--ignore-scripts'], {
    cwd: root,
    encoding: 'utf8',
  })
  const [{ files }] = JSON.parse(json) as [{ files: { path: string }[] }]
  return new Set(files.map(({ path }) => path))
}

/** The targets of a document's links and pictures, without code. */
function linksOf(markdown: string): string[] {
  const prose = markdown.replaceAll(/```[\s\S]*?```|`[^`\n]*`/g, 'code')
  return Array.from(prose.matchAll(/\]\(([^)\s]+)\)/g), ([, target]) => target ?? '')
}

/** The anchors of headings. */
function anchorsOf(markdown: string): string[] {
  const headings = markdown.replaceAll(/```[\s\S]*?```/g, '').matchAll(/^#+ (.*)$/gm)
  return Array.from(headings, ([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s-]/gu, '')
      .replaceAll(/\s/g, '-'),
  )
}

describe('the documents in the package', () => {
  const files = packed()
  const documents = [...files].filter((file) => file.endsWith('.md'))
  const textOf = (file: string) => readFileSync(root + file, 'utf8')
  const isThere = (path: string) =>
    files.has(path) || [...files].some((file) => file.startsWith(path.replace(/\/?$/, '/')))

  it('are all there', () => {
    expect(documents).toEqual(
      expect.arrayContaining(['README.md', 'CHANGELOG.md', 'docs/sessions.md', 'visualizations/README.md']),
    )
  })

  it.each(documents)('%s links to what is there', (document) => {
    const dead = linksOf(textOf(document)).filter((link) => {
      if (/^https?:/.test(link)) return false
      const [path = '', anchor] = link.split('#')
      const target = path === '' ? document : posix.normalize(posix.join(posix.dirname(document), path))
      return !isThere(target) || (anchor !== undefined && !anchorsOf(textOf(target)).includes(anchor))
    })
    expect(dead).toEqual([])
  })

  it('sees links in text, and none in code', () => {
    expect(linksOf('[a](b.md) ![c](d.svg#e) `[f](g)`\n```\n[h](i)\n```')).toEqual(['b.md', 'd.svg#e'])
    expect(anchorsOf('# Memory and attachments\n## `presets.aar`, and more')).toEqual([
      'memory-and-attachments',
      'presetsaar-and-more',
    ])
  })

  it.each(['src', 'machines', 'guards'])('stand beside the sources in %s', (folder) => {
    expect([...files].filter((file) => file.startsWith(`${folder}/`) && file.endsWith('.ts'))).not.toEqual([])
  })

  it('come without tests', () => {
    // An example may contain tests as part of its code.
    const ours = [...files].filter((file) => !file.startsWith('examples/'))
    expect(ours.filter((file) => file.startsWith('test/') || file.includes('.test.'))).toEqual([])
  })
})
