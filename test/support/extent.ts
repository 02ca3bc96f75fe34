import { describe, test } from '@jest/globals'

/** `STATEWRIGHT_TESTS=all` runs every test at its full size, as the build does. `npm test` alone runs a sample of the longest. */
export const runsAll = process.env['STATEWRIGHT_TESTS'] === 'all'

/** How many of `whole` runs, pieces or rows a test takes: all of them, or a fifth. */
export const sampled = (whole: number): number => (runsAll ? whole : Math.ceil(whole / 5))

/** The rows of a table that a test takes: all of them, or the first and each fifth after it. */
export const sampledRows = <Row>(rows: readonly Row[]): readonly Row[] =>
  runsAll ? rows : rows.filter((_, i) => i % 5 === 0)

/** Of the kinds of store, transport or server that the same tests run with: each, or the last, which is the furthest from memory. */
export const sampledKinds = <Kinds extends readonly unknown[]>(kinds: Kinds): Kinds =>
  runsAll ? kinds : (kinds.slice(-1) as unknown as Kinds)

/** A test that takes seconds and cannot be sampled: only the build runs it, so that no other test may need what it leaves. */
export const longTest = runsAll ? test : test.skip

/** The same for tests that share what takes seconds. */
export const longDescribe = runsAll ? describe : describe.skip
