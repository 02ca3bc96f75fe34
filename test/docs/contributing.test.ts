import { existsSync, readFileSync } from 'node:fs'
import { root } from './snippets.js'

const { scripts } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as {
  scripts: Record<string, string>
}

describe.each(['CONTRIBUTING.md', 'AGENTS.md', 'SECURITY.md'])('%s', (document) => {
  const text = readFileSync(root + document, 'utf8')

  it('names only commands that there are', () => {
    const named = [...text.matchAll(/npm run ([\w:-]+)/g)].map(([, name = '']) => name)
    expect(named.filter((name) => scripts[name] === undefined)).toEqual([])
  })

  it('names only files and folders that there are', () => {
    const linked = [...text.matchAll(/\]\(([^)#]+)(#[^)]*)?\)/g)].map(([, path = '']) => path)
    const named = [
      ...text.matchAll(/\b((?:src|test|guards|machines|docs|scripts|visualizations)\/[\w./-]*\w)/g),
    ].map(([, path = '']) => path)
    const isExample = (path: string) => /NAME|PATH/.test(path)
    expect([...linked, ...named].filter((path) => !isExample(path) && !existsSync(root + path))).toEqual([])
  })
})
