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

test('tests run the code of every page', () => {
  // `npm run suite -- pack` covers the tutorial.
  expect(pages.filter((page) => !documents.includes(`docs/${page}`))).toEqual(['tutorial.md'])
})

test('README is short, and starts with the essentials', () => {
  const text = readFileSync(`${root}README.md`, 'utf8')
  const lines = text.trimEnd().split('\n')
  expect([text.length <= 5000, lines.length <= 90]).toEqual([true, true])
  expect(lines.filter((line) => line.startsWith('|')).length).toBeLessThanOrEqual(15)
  expect(lines.indexOf('npm install statewright zod')).toBeLessThan(12)
  expect(text).toContain('\nnpm ci && npm start ')
  expect(text).toContain('\nnpm ci && npm test ')
})

test('the newest section of the changelog is short, and lists each entry once', () => {
  const [, newest = ''] = readFileSync(`${root}CHANGELOG.md`, 'utf8').split(/^## /m)
  const lines = newest.split('\n')
  expect(lines.length).toBeLessThanOrEqual(60)
  const subjects = lines.filter((line) => line.startsWith('- ')).map((line) => line.slice(0, 20))
  expect(subjects.filter((subject, i) => subjects.indexOf(subject) < i)).toEqual([])
})
