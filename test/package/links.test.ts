import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runsAll } from '../support/extent.js'

const root = fileURLToPath(new URL('../..', import.meta.url))

function listInGit(...paths: string[]): Set<string> {
  const args = ['ls-files', ...paths]
  return new Set(execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim().split('\n'))
}

/** The files that `npm pack` includes. Listing them takes npm seconds, so a sample uses the list's files that are in git. */
function packed(): Set<string> {
  if (!runsAll) {
    const { files } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as { files: string[] }
    return listInGit('package.json', 'README.md', 'LICENSE', ...files.map((path) => `:(glob)${path}`))
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
  // Links to sources and pictures lead to the repository, where npm resolves them.
  const inRepository = [...listInGit()]
  const textOf = (file: string) => readFileSync(root + file, 'utf8')
  const isThere = (path: string) =>
    inRepository.includes(path) || inRepository.some((file) => file.startsWith(path.replace(/\/?$/, '/')))

  it('are complete', () => {
    expect(documents).toEqual(
      expect.arrayContaining(['README.md', 'CHANGELOG.md', 'docs/sessions.md', 'SKILL.md']),
    )
  })

  it.each(documents)('%s links to existing targets', (document) => {
    const dead = linksOf(textOf(document)).filter((link) => {
      if (/^https?:/.test(link)) return false
      const [path = '', anchor] = link.split('#')
      const target = path === '' ? document : posix.normalize(posix.join(posix.dirname(document), path))
      return !isThere(target) || (anchor !== undefined && !anchorsOf(textOf(target)).includes(anchor))
    })
    expect(dead).toEqual([])
  })

  it('include links in text, and none in code', () => {
    expect(linksOf('[a](b.md) ![c](d.svg#e) `[f](g)`\n```\n[h](i)\n```')).toEqual(['b.md', 'd.svg#e'])
    expect(anchorsOf('# Memory and attachments\n## `presets.aar`, and more')).toEqual([
      'memory-and-attachments',
      'presetsaar-and-more',
    ])
  })

  it('are packed without sources, pictures, examples and tests', () => {
    const others = [...files].filter((file) => !/^(?:dist|docs|config\/samples|examples\/notes)\//.test(file))
    expect(others.filter((file) => file.includes('/'))).toEqual([])
    expect([...files].filter((file) => file.startsWith('docs/') && !file.endsWith('.md'))).toEqual([])
  })
})
