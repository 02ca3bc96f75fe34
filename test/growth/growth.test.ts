/**
 * Code that processes text, history, records or messages runs at n, 2n and 4n. Its cost may grow linearly,
 * not quadratically. `npm test` measures some rows at small sizes, with a different selection each day. `npm
 * run suite -- growth` measures all of them at larger sizes, and `STATEWRIGHT_GROWTH='secret' npm test --
 * test/growth` only the rows whose names contain that word. To add a row, add `row({ name, covers, from,
 * prepare, run })` to a file in `rows/`. `prepare(n)` makes the input of size n, and `run(input)` is
 * measured. `covers` names the row's subjects, as listed by `subjects()` in `registry.ts`. A listed subject
 * without a row needs a line in `exempt.ts` with the reason.
 */
import { jest } from '@jest/globals'
import { exempt } from './exempt.js'
import { type Effort, growthOf, inWords } from './measure.js'
import { subjects } from './registry.js'
import { rows } from './rows/index.js'

// Not bundled, in a separate file, because it imports every entry of the package by name.
jest.setTimeout(120_000)

const which = process.env['STATEWRIGHT_GROWTH'] ?? ''
const isWhole = which !== ''
const day = Math.floor(Date.now() / 86_400_000)
const due = isWhole
  ? rows.filter(({ name }) => which === 'all' || name.includes(which))
  : rows.filter(({ oneOf = 96 }, i) => (i + day) % oneOf === 0)

const effort: Effort = isWhole ? { floorMs: 8, doublings: 10 } : { floorMs: 1, doublings: 1 }

test('every function with external input has a row, or a reason to have none', async () => {
  const all = await subjects()
  const known = new Set([...rows.flatMap(({ covers }) => covers), ...exempt.keys()])
  expect(all.filter((subject) => !known.has(subject))).toEqual([])
  // A removed subject needs neither.
  const listed = new Set(all)
  expect([...known].filter((subject) => !listed.has(subject))).toEqual([])
})

test('quadratic cost is detected, and linear cost is not', async () => {
  const of = (work: (n: number) => number) =>
    growthOf({ from: 500, prepare: (n) => n, ...proof, run: work as never }, { floorMs: 1, doublings: 5 })
  expect((await of((n) => spin(n * 500))).isSteep).toBe(false)
  expect((await of((n) => spin(n * n))).isSteep).toBe(true)
})

const proof = { name: 'proof', covers: [] }

function spin(times: number): number {
  let sum = 0
  for (let i = 0; i < times; i += 1) sum = (sum * 31 + i) % 65_521
  return sum
}

test.each(due.map((row) => [row.name, row] as const))('%s grows no faster than its input', async (_, row) => {
  const growth = await growthOf(row, effort)
  expect(growth.isSteep ? inWords(growth) : '').toBe('')
})
