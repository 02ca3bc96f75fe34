/** Choices at random, the same for the same seed. */
export interface RandomChoices {
  /** From 0 to `most`, both included. */
  whole: (most: number) => number
  one: <Value>(values: readonly [Value, ...Value[]]) => Value
  /** Up to so many characters of all kinds: control characters, quotes, halves of surrogate pairs. */
  text: (most: number) => string
}

export function createRandomChoices(seed: number): RandomChoices {
  let state = seed >>> 0
  /** From 0 to 1, 1 excluded: a multiplicative mix of a counter. */
  const next = (): number => {
    state = (state + 0x9e3779b9) >>> 0
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad)
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97)
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 0x1_0000_0000
  }
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
