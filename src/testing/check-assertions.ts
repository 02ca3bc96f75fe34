import { limitTime } from '../core/base/abort.js'
import { describeError, StatewrightError } from '../core/base/errors.js'
import { toCanonicalJson } from './canonical-json.js'

export class CheckFailure extends Error {}

/** Compares values as JSON, ignoring key order. @throws CheckFailure */
export function expectSame(what: string, found: unknown, wanted: unknown): void {
  if (toCanonicalJson(found) !== toCanonicalJson(wanted))
    throw new CheckFailure(`${what} should be ${formatValue(wanted)}, but is ${formatValue(found)}`)
}

export function expectTrue(isSo: boolean, otherwise: string): asserts isSo {
  if (!isSo) throw new CheckFailure(otherwise)
}

export function formatValue(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing'
  return text.length > 200 ? `${text.slice(0, 200)}…` : text
}

/** The problem found by a check, as a sentence without its full stop, or null. */
export async function findCheckProblem(withinMs: number, work: Promise<unknown>): Promise<string | null> {
  const late = (): Error => new CheckFailure(`it took longer than ${withinMs} ms`)
  try {
    await limitTime({ ms: withinMs, late }, work)
    return null
  } catch (error) {
    return error instanceof CheckFailure
      ? error.message
      : `it failed: ${describeError(error).replace(/\.$/, '')}`
  }
}

/** The result of one check of a provider or a store. */
export interface CheckResult {
  /** The name or the requirement, such as `the log is read as it was written`. */
  name: string
  outcome: 'kept' | 'broken' | 'skipped'
  /** The problem, or why the check was skipped. Null if it passed. */
  problem: string | null
}

export interface CheckReport {
  checks: CheckResult[]
  /** Broken checks, one sentence each. A test expects this list to be empty. */
  broken: string[]
}

/** Runs checks one after the other, so that none delays another, and adds their results to the report. */
export async function runChecks<Check extends { name: string }>(
  report: CheckReport,
  checks: readonly Check[],
  findSkip: (check: Check) => string | undefined,
  run: (check: Check) => Promise<Omit<CheckResult, 'name'>>,
): Promise<void> {
  for (const check of checks) {
    const { name } = check
    const why = findSkip(check)
    const result = why === undefined ? await run(check) : { outcome: 'skipped' as const, problem: why }
    report.checks.push({ name, ...result })
    if (result.outcome === 'broken') report.broken.push(`${name}: ${result.problem}.`)
  }
}

/** `available` describes the known names. @throws StatewrightError `bad_option` for an unknown check name */
export function checkNames(
  key: string,
  names: readonly string[],
  known: readonly string[],
  available = known.join(', '),
): void {
  const unknown = names.find((name) => !known.includes(name))
  if (unknown === undefined) return
  const text = `${key}: unknown check '${unknown}'. Available: ${available}.`
  throw new StatewrightError('bad_option', text, key)
}

export interface RandomChoices {
  /** A whole number from 0 to `most`, inclusive. */
  whole: (most: number) => number
  one: <Value>(values: readonly [Value, ...Value[]]) => Value
  /** Text of up to `most` characters of all kinds, including control characters, quotes and unpaired surrogates. */
  text: (most: number) => string
}

/** Splitmix32: numbers from 0 to 1, exclusive. */
export function createRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x9e3779b9) >>> 0
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad)
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97)
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 0x1_0000_0000
  }
}

export function createRandomChoices(seed: number): RandomChoices {
  const next = createRandom(seed)
  const whole = (most: number): number => Math.floor(next() * (most + 1))
  const character = (): string => {
    const kind = whole(4)
    if (kind === 0) return String.fromCodePoint(whole(0x10ffff))
    if (kind === 1) return String.fromCharCode(whole(0x1f))
    return String.fromCharCode(kind === 2 ? whole(0xffff) : 0x20 + whole(0x5e))
  }
  return {
    whole,
    one: (values) => values[whole(values.length - 1)] ?? values[0],
    text: (most) => Array.from({ length: whole(most) }, character).join(''),
  }
}
