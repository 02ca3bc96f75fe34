import { StatewrightError } from '../core/base/errors.js'

/** A failed check. */
export class CheckFailure extends Error {}

/** Whether what is found is what is wanted, compared as JSON; the order of keys means nothing. @throws CheckFailure */
export function expectSame(what: string, found: unknown, wanted: unknown): void {
  if (toOrderedJson(found) !== toOrderedJson(wanted))
    throw new CheckFailure(`${what} should be ${formatValue(wanted)}, but is ${formatValue(found)}`)
}

/** @throws CheckFailure */
export function expectTrue(isSo: boolean, otherwise: string): asserts isSo {
  if (!isSo) throw new CheckFailure(otherwise)
}

export function formatValue(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing'
  return text.length > 200 ? `${text.slice(0, 200)}…` : text
}

/** @throws StatewrightError `bad_option` for a name that no check has */
export function checkSkippedNames(names: readonly string[], checks: readonly { name: string }[]): void {
  const unknown = names.find((name) => !checks.some((check) => check.name === name))
  if (unknown === undefined) return
  const known = checks.map(({ name }) => name).join(', ')
  throw new StatewrightError(
    'bad_option',
    `skip: there is no check '${unknown}'. There are: ${known}.`,
    'skip',
  )
}

function toOrderedJson(value: unknown): string | undefined {
  return JSON.stringify(value, (_key, part: unknown) =>
    typeof part === 'object' && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  )
}
