import { describe, test } from '@jest/globals'

/**
 * `STATEWRIGHT_TESTS=all` runs every test at its full size, as the build does. `npm test` alone runs a sample
 * of the longest.
 */
export const runsAll = process.env['STATEWRIGHT_TESTS'] === 'all'

/** How many of `whole` runs, pieces or rows a test covers: all of them, or an eighth. */
export const sampled = (whole: number): number => (runsAll ? whole : Math.ceil(whole / 8))

/** The rows of a table that a test covers: all of them, or the first and each eighth row after it. */
export const sampledRows = <Row>(rows: readonly Row[]): readonly Row[] =>
  runsAll ? rows : rows.filter((_, i) => i % 8 === 0)

/**
 * The kinds of store, transport or server that a test covers: all of them, or only the last, which differs
 * most from memory.
 */
export const sampledKinds = <Kinds extends readonly unknown[]>(kinds: Kinds): Kinds =>
  runsAll ? kinds : (kinds.slice(-1) as unknown as Kinds)

/**
 * A slow test that cannot be sampled. Only the build runs it, so no other test may depend on its results.
 */
export const longTest = runsAll ? test : test.skip

/** The same for tests that share a slow setup. */
export const longDescribe = runsAll ? describe : describe.skip
