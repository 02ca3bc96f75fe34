/**
 * The issuers' ranges (ISO/IEC 7812 issuer identification numbers, as the networks publish them) and lengths:
 * American Express 34, 37 · Diners Club 300–305, 3095, 36, 38, 39 · Discover 6011, 644–649, 65 · JCB 3528–3589 ·
 * Maestro 50, 56–58, 6304, 6759, 676 · Mastercard 51–55, 2221–2720 · Mir 2200–2204 · UnionPay 62, 81 · Visa 4.
 */
const issuers: readonly (readonly [start: RegExp, lengths: readonly number[]])[] = [
  [/^3[47]/, [15]],
  [/^3(?:0[0-5]|095|[689])/, [14, 16, 19]],
  [/^(?:6011|64[4-9]|65)/, [16, 19]],
  [/^35(?:2[89]|[3-8])/, [16, 19]],
  [/^(?:5[0678]|6304|6759|676)/, [13, 15, 16, 18, 19]],
  [/^(?:5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720)/, [16]],
  [/^220[0-4]/, [16, 19]],
  [/^(?:62|81)/, [16, 17, 18, 19]],
  [/^4/, [13, 16, 19]],
]

/** What the issuers' ranges look at. */
const prefix = 4

/** The lengths that a number with these first digits can have, longest first. A text of digits asks again and again. */
const lengthsByPrefix = new Map<string, readonly number[]>()

function listLengths(digits: string): readonly number[] {
  const start = digits.slice(0, prefix)
  const known = lengthsByPrefix.get(start)
  if (known) return known
  const lengths = issuers.flatMap(([range, possible]) => (range.test(start) ? possible : []))
  const longestFirst = [...new Set(lengths)].sort((a, b) => b - a)
  lengthsByPrefix.set(start, longestFirst)
  return longestFirst
}

/**
 * How many characters of a text, digits with single separators, are the number of a payment card; 0 when it begins
 * with none. The longest wins: what follows may be its expiry or its code.
 */
export function findCardNumberLength(text: string): number {
  const digits = text.replace(/\D+/g, '')
  const length = listLengths(digits).find((n) => n <= digits.length && isLuhn(digits, n))
  if (length === undefined) return 0
  const end = indexAfterDigits(text, length)
  return isDigit(text, end) ? 0 : end
}

const zero = 48

/** ISO/IEC 7812-1, annex B: the check digit, here of the first so many digits. */
function isLuhn(digits: string, length: number): boolean {
  let sum = 0
  for (let i = 0; i < length; i += 1) {
    const digit = digits.charCodeAt(length - 1 - i) - zero
    const doubled = i % 2 === 1 ? digit * 2 : digit
    sum += doubled > 9 ? doubled - 9 : doubled
  }
  return sum % 10 === 0
}

function indexAfterDigits(text: string, count: number): number {
  let index = 0
  for (let seen = 0; seen < count; index += 1) if (isDigit(text, index)) seen += 1
  return index
}

function isDigit(text: string, index: number): boolean {
  const code = text.charCodeAt(index) - zero
  return code >= 0 && code <= 9
}
