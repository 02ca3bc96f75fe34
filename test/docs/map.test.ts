import { readdirSync, readFileSync } from 'node:fs'
import { documents, root } from './snippets.js'

const map = readFileSync(`${root}docs/README.md`, 'utf8')
const { exports } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as {
  exports: Record<string, unknown>
}
const pages = readdirSync(`${root}docs`).filter((name) => name.endsWith('.md') && name !== 'README.md')

test('the map has every page of docs/, and every entry point of the package', () => {
  expect(pages.filter((page) => !map.includes(`](${page})`))).toEqual([])
  const entries = Object.keys(exports).map((name) => name.replace('.', 'statewright'))
  const named = entries.filter((name) => map.includes(`| \`${name}\` |`))
  expect(entries.filter((name) => !named.includes(name))).toEqual(['statewright/package.json'])
})

test('what every page says is held by tests', () => {
  expect(pages.filter((page) => !documents.includes(`docs/${page}`))).toEqual([])
})

test('README is short, and begins with what a reader does first', () => {
  const lines = readFileSync(`${root}README.md`, 'utf8').split('\n')
  expect(lines.length).toBeLessThan(170)
  const commands = lines.findIndex((line) => line.startsWith('npm ci && npm start'))
  expect([lines[commands + 1]?.startsWith('npm ci && npm test'), commands < 10]).toEqual([true, true])
})
