import { existsSync, readFileSync } from 'node:fs'
import { listScripts } from './npm-scripts.js'
import { root } from './snippets.js'

it('has at most 25 npm scripts', async () => {
  expect((await listScripts()).filter((name) => !name.includes(' ')).length).toBeLessThanOrEqual(25)
})

describe.each(['CONTRIBUTING.md', 'AGENTS.md', 'SECURITY.md'])('%s', (document) => {
  const text = readFileSync(root + document, 'utf8')

  it('names only commands that exist', async () => {
    const known = await listScripts()
    const named = [...text.matchAll(/npm run ([\w:-]+(?: -- [a-z][\w-]*)?)/g)].map(([, name = '']) => name)
    expect(named.filter((name) => !known.includes(name))).toEqual([])
  })

  it('names only files and folders that exist', () => {
    const linked = [...text.matchAll(/\]\(([^)#]+)(#[^)]*)?\)/g)].map(([, path = '']) => path)
    const named = [
      ...text.matchAll(/\b((?:src|test|guards|machines|docs|scripts|visualizations)\/[\w./-]*\w)/g),
    ].map(([, path = '']) => path)
    const isExample = (path: string) => /NAME|PATH/.test(path)
    expect([...linked, ...named].filter((path) => !isExample(path) && !existsSync(root + path))).toEqual([])
  })
})
