import { readFileSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string) => readFileSync(root + path, 'utf8')

type Changes = (before: string | undefined, after: string | undefined) => string[]
interface Table {
  readTable: (text: string) => { table: string }
  isStale: (table: string, sizes: { name: string; kB: number }[]) => boolean
  toTable: (sizes: { name: string; kB: number }[]) => string
}

const { exports } = JSON.parse(read('package.json')) as { exports: Record<string, { types?: string }> }
const entries = Object.entries(exports).flatMap(([path, { types }]) =>
  types === undefined ? [] : [`statewright${path.slice(1)}`],
)

test('each entry point has a record of its public types, and its size in the README', async () => {
  expect(readdirSync(`${root}api`).toSorted()).toEqual(
    entries.map((name) => `${name.replaceAll('/', '.')}.md`).toSorted(),
  )
  const { readTable, isStale } = await load<Table>('scripts/entry-sizes.mjs')
  const { table } = readTable(read('README.md'))
  const sizes = Array.from(table.matchAll(/`(.+)` \| (\d+) kB/g), ([, name = '', kB]) => ({
    name,
    kB: Number(kB),
  }))
  expect(sizes.map(({ name }) => name)).toEqual(entries)
  expect(isStale(table, sizes)).toBe(false)
})

test('a size is stale when it is two kB off, or when an entry comes or goes', async () => {
  const { toTable, isStale } = await load<Table>('scripts/entry-sizes.mjs')
  const table = toTable([{ name: 'a', kB: 10 }])
  const judged = [
    [{ name: 'a', kB: 11 }],
    [{ name: 'a', kB: 12 }],
    [],
    [{ name: 'b', kB: 10 }],
    [
      { name: 'a', kB: 10 },
      { name: 'b', kB: 1 },
    ],
  ].map((sizes) => isStale(table, sizes))
  expect(judged).toEqual([false, true, true, true, true])
})

test('a changed record names the exports that are new, gone or different', async () => {
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
