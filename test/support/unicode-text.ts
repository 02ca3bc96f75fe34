import * as fc from 'fast-check'

const surrogates = 0x800
const last = 0x10ffff - surrogates

/** Any character except lone surrogates. */
const anyCharacter = fc.nat({ max: last }).map(
  (n) => String.fromCodePoint(n < 0xd800 ? n : n + surrogates),
  (input) => {
    const point = typeof input === 'string' ? (input.codePointAt(0) ?? -1) : -1
    if (point < 0 || (point >= 0xd800 && point <= 0xdfff) || String.fromCodePoint(point) !== input)
      throw new Error('It is not a character.')
    return point < 0xd800 ? point : point - surrogates
  },
)

/**
 * Equivalent to `fc.string({ unit: 'binary' })`, which builds a map of all 1,112,064 characters in each
 * process and takes most of a second.
 */
export const unicodeText = (constraints: Omit<fc.StringConstraints, 'unit'> = {}): fc.Arbitrary<string> =>
  fc.string({ ...constraints, unit: anyCharacter })
