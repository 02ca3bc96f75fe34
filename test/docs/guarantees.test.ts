import { readFileSync, writeFileSync } from 'node:fs'
import { needCount, readClaims, readNames, renderClaim, renderGuarantees, renderStamp } from './guarantees.js'
import { root } from './snippets.js'

const file = `${root}docs/guarantees.md`
const marked = /<!-- bench:guarantees -->\n([^]*?)\n?<!-- \/bench:guarantees -->/

/** The line with the date and the contents of the count. */
function readPage(): [stamp: string, counted: string] {
  const [, block = ''] = marked.exec(readFileSync(file, 'utf8')) ?? []
  const [stamp = '', ...rest] = block.split('\n\n')
  return [stamp, rest.join('\n\n')]
}

test('the page has every guarantee with its rules, its tests and current counts: npm run guarantees', async () => {
  const counted = await renderGuarantees()
  // `npm run guarantees` updates only changed counts, so that each entry names the commit of its last change.
  if (process.env.STATEWRIGHT_GUARANTEES === 'write' && readPage()[1] !== counted) {
    const block = `<!-- bench:guarantees -->\n${renderStamp()}\n\n${counted}\n<!-- /bench:guarantees -->`
    writeFileSync(
      file,
      readFileSync(file, 'utf8').replace(marked, () => block),
    )
  }
  const [stamp, counts] = readPage()
  expect(stamp).toMatch(/^Counted on \d{4}-\d\d-\d\d, after commit [\da-f]{7,}\.$/)
  expect(counts).toBe(counted)
})

test('the guarantees of the README are on the page', () => {
  const known = readClaims().map(({ name }) => name)
  const listed = readNames()
  expect(listed.length).toBe(5)
  expect(listed.filter((name) => !known.includes(name))).toEqual([])
})

test.each([[undefined], [0], [Number.NaN], [1.5]])('a count that is %p is refused', (count) => {
  expect(() => needCount(count, 'kills')).toThrow('No count of: kills')
})

test('a claim without tests, without rules, or with a test that does not exist is refused', () => {
  const claim = {
    name: 'It stops',
    text: 'It stops.',
    rules: ['no event crashes the machine'],
    tests: ['test/graph/invariants.test.ts › in every reachable state: %s'],
  }
  expect(renderClaim(claim)).toContain('no event crashes the machine')
  expect(() => renderClaim({ ...claim, tests: [] })).toThrow('The claim "It stops" has no tests')
  expect(() => renderClaim({ ...claim, rules: [] })).toThrow('has no rules')
  expect(() => renderClaim({ ...claim, tests: ['test/docs/tables.test.ts › a'] })).toThrow(
    'do not exist: test/docs',
  )
  expect(() => renderClaim({ ...claim, rules: ['it flies'] })).toThrow('do not exist: it flies')
})
