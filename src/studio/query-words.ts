// The words of what is asked for, in a search of sessions and in a filter of steps.

/** A word, or a key with a value that is in quotes if it has spaces: `tag:"city=New York"`. */
const wordPattern = /[^\s":]+:"[^"]*"|"[^"]*"|\S+/g

export function splitQuery(text: string): string[] {
  return text.match(wordPattern) ?? []
}

/** The parts of `tool:pay`; null for a word of another form. */
export function readTerm(word: string): { name: string; value: string } | null {
  const [, name, quoted, plain] = /^([a-z]+):(?:"([^"]*)"|(.+))$/.exec(word) ?? []
  return name === undefined ? null : { name, value: quoted ?? plain ?? '' }
}

/** What `cost>0.01`, `tokens<=2k` or `>1s` compares. A number without a name is a duration; one without a unit, in seconds. */
export interface Comparison {
  measure: 'cost' | 'tokens' | 'steps' | 'duration'
  /** Milliseconds, for a duration. What is not known fits no comparison. */
  fits: (value: number | null) => boolean
}

/** Null for a word of another form. */
export function readComparison(word: string): Comparison | null {
  const [, name, sign = '', number, unit = ''] =
    /^(cost|tokens|steps|duration)?([<>]=?)\$?(\d+(?:\.\d+)?)(ms|s|m|h|d|k)?$/.exec(word) ?? []
  if (number === undefined) return null
  const measure = (name as Comparison['measure'] | undefined) ?? 'duration'
  const limit = Number(number) * (units[unit] ?? (measure === 'duration' ? 1_000 : 1))
  return { measure, fits: (value) => value !== null && compare(value, sign, limit) }
}

const units: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, k: 1_000 }

function compare(value: number, sign: string, limit: number): boolean {
  switch (sign) {
    case '>':
      return value > limit
    case '<':
      return value < limit
    case '>=':
      return value >= limit
    default:
      return value <= limit
  }
}
