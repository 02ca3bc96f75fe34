import { readdirSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** The folders in which the code is, in the order in which it may ask for others: each only for those after it. */
const order = ['src', 'machines', 'guards']

function importsOf(folder: string): { file: string; target: string }[] {
  const files = readdirSync(root + folder, { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.ts'),
  )
  return files.flatMap((name) => {
    const file = posix.join(folder, name.replaceAll('\\', '/'))
    const source = readFileSync(root + file, 'utf8')
    return Array.from(
      source.matchAll(/(?:from|import) '(\.[^']+)'|import\('(\.[^']+)'\)/g),
      ([, at, later]) => ({
        file,
        target: posix.normalize(posix.join(posix.dirname(file), at ?? later ?? '')),
      }),
    )
  })
}

const topOf = (path: string): string => path.split('/')[0] ?? ''

test.each(order)('imports go one way: %s', (folder) => {
  const imports = importsOf(folder)
  expect(imports).not.toEqual([])
  const back = imports.filter(({ target }) => order.indexOf(topOf(target)) < order.indexOf(folder))
  expect(back).toEqual([])
})

test('guards know nothing of a machine, and nothing of the world', () => {
  const names = readdirSync(`${root}guards`, { recursive: true, encoding: 'utf8' })
  const packages = names
    .filter((name) => name.endsWith('.ts'))
    .flatMap((name) => {
      const source = readFileSync(`${root}guards/${name}`, 'utf8')
      return Array.from(source.matchAll(/from '([^.'][^']*)'/g), ([, target]) => target)
    })
  expect(packages).toEqual([])
})
