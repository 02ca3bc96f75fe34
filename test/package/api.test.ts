import { readFileSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string) => readFileSync(root + path, 'utf8')

type Changes = (before: string | undefined, after: string | undefined) => string[]
interface Size {
  name: string
  kB: number
}
interface Sizes {
  findSizes: (text: string) => { line: string }
  parseSizes: (line: string) => Size[]
  isStale: (line: string, sizes: Size[]) => boolean
  formatSizes: (sizes: Size[]) => string
}

const { exports } = JSON.parse(read('package.json')) as { exports: Record<string, { types?: string }> }
const entries = Object.entries(exports).flatMap(([path, { types }]) =>
  types === undefined ? [] : [`statewright${path.slice(1)}`],
)

test('each entry point has a record of its public types, and its size in docs/README.md', async () => {
  expect(readdirSync(`${root}api`).toSorted()).toEqual(
    entries.map((name) => `${name.replaceAll('/', '.')}.md`).toSorted(),
  )
  const { findSizes, parseSizes, isStale } = await load<Sizes>('scripts/entry-sizes.mjs')
  const { line } = findSizes(read('docs/README.md'))
  const sizes = parseSizes(line)
  expect(sizes.map(({ name }) => name)).toEqual(entries)
  expect(isStale(line, sizes)).toBe(false)
})

test('a size is outdated if it is off by two kB, or if an entry point is added or removed', async () => {
  const { formatSizes, isStale } = await load<Sizes>('scripts/entry-sizes.mjs')
  const line = formatSizes([{ name: 'a', kB: 10 }])
  const judged = [
    [{ name: 'a', kB: 11 }],
    [{ name: 'a', kB: 12 }],
    [],
    [{ name: 'b', kB: 10 }],
    [
      { name: 'a', kB: 10 },
      { name: 'b', kB: 1 },
    ],
  ].map((sizes) => isStale(line, sizes))
  expect(judged).toEqual([false, true, true, true, true])
})

test('a changed record names the exports that are new, removed or different', async () => {
  const { listChangedBlocks } = await load<{ listChangedBlocks: Changes }>('scripts/api-changes.mjs')
  const fence = (...blocks: string[]) => `# x\n\n\`\`\`ts\n${blocks.join('\n\n')}\n\`\`\`\n`
  const before = fence("export { A } from 'b';", 'interface B {\n    a: string;\n}', 'function c(): void;')
  const after = fence('interface B {\n    a: number;\n}', 'function c(): void;', 'abstract class D {\n}')
  expect(listChangedBlocks(before, after)).toEqual(['- A', '~ B', '+ D'])
  expect(listChangedBlocks(before, before)).toEqual([])
  expect(listChangedBlocks(undefined, after)).toEqual(['a new entry'])
  expect(listChangedBlocks(before, undefined)).toEqual(['the entry is gone'])
})

function load<Module>(path: string): Promise<Module> {
  return import(root + path) as Promise<Module>
}
