import { getOrCreate } from '../base/values.js'
import { createWordStart, type Finder } from './finder.js'

/**
 * Issuer ranges (ISO/IEC 7812, as published by the networks) and lengths: American Express 34, 37 · Diners Club
 * 300–305, 3095, 36, 38, 39 · Discover 6011, 644–649, 65 · JCB 3528–3589 · Maestro 50, 56–58, 6304, 6759, 676 ·
 * Mastercard 51–55, 2221–2720 · Mir 2200–2204 · UnionPay 62, 81 · Visa 4.
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

const lengthsByPrefix = new Map<string, readonly number[]>()

/** The possible lengths of a card number, longest first. */
function listLengths(digits: string): readonly number[] {
  const start = digits.slice(0, 4)
  return getOrCreate(lengthsByPrefix, start, () => {
    const lengths = issuers.flatMap(([range, possible]) => (range.test(start) ? possible : []))
    return [...new Set(lengths)].sort((a, b) => b - a)
  })
}

/** The length of the card number at the start, or 0. The longest wins, because an expiry date or a code may follow. */
function findCardNumberLength(text: string): number {
  const digits = text.replace(/\D+/g, '')
  const length = listLengths(digits).find((n) => n <= digits.length && isLuhn(digits, n))
  if (length === undefined) return 0
  const end = indexAfterDigits(text, length)
  return isDigit(text, end) ? 0 : end
}

/** Whether the check digit of the first `length` digits is correct (ISO/IEC 7812-1, annex B). */
function isLuhn(digits: string, length: number): boolean {
  let sum = 0
  for (let i = 0; i < length; i += 1) {
    const digit = Number(digits[length - 1 - i])
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

const isDigit = (text: string, index: number): boolean => /\d/.test(text[index] ?? '')

/** IBAN lengths by country, from SWIFT's IBAN registry (ISO 13616). */
const lengths = new Map(
  (
    'AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 ' +
    'ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 ' +
    'LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 ' +
    'PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30'
  )
    .split(' ')
    .map((entry) => [entry.slice(0, 2), Number(entry.slice(2))] as const),
)

/** Length of the IBAN at the start of a text of letters and digits with single separators, or 0. */
function findIbanLength(text: string): number {
  const length = lengths.get(text.slice(0, 2).toUpperCase())
  if (length === undefined) return 0
  let end = 0
  let compact = ''
  for (; compact.length < length && end < text.length; end += 1) {
    const character = text[end] ?? ''
    if (isAlphanumeric(character)) compact += character
  }
  // A longer word is not an IBAN.
  if (compact.length < length || isAlphanumeric(text[end] ?? '')) return 0
  return getRemainder(compact) === 1 ? end : 0
}

/** ISO 7064 MOD 97-10: the first four characters move to the end, and letters become numbers (A is 10). */
function getRemainder(iban: string): number {
  let rest = 0
  for (const character of iban.slice(4) + iban.slice(0, 4)) {
    const value = Number.parseInt(character, 36)
    rest = (rest * (value > 9 ? 100 : 10) + value) % 97
  }
  return rest
}

const isAlphanumeric = (character: string): boolean => /[A-Za-z0-9]/.test(character)

function createPattern(characters: string, source: string, flags = 'g'): RegExp {
  return new RegExp(`${createWordStart(characters)}${source}`, flags)
}

const { raw } = String

type Pattern = Omit<Finder, 'kind'>

/** Patterns of personal data with a verifiable form. All run in linear time. */
const patterns = {
  /** RFC 5321 §4.5.3.1: 64 octets before the @; RFC 1035 §2.3.4: labels of at most 63. */
  email: {
    pattern: createPattern(
      raw`\p{L}\p{N}_.+%\-`,
      raw`[\p{L}\p{N}_.+%\-]{1,64}@(?:[\p{L}\p{N}\-]{1,63}\.){1,8}\p{L}{2,63}`,
      'gu',
    ),
  },
  /** ISO 13616, with check digits. */
  iban: {
    pattern: createPattern(
      'A-Za-z0-9',
      raw`(?=(?<candidate>[A-Za-z]{2}\d{2}(?:[ \u00a0-]?[A-Za-z0-9]){11,34}))`,
    ),
    accepts: findIbanLength,
  },
  /** ISO/IEC 7812, with issuer, length and check digit. */
  credit_card: {
    pattern: createPattern(raw`\w`, raw`(?<!\d[.,])(?=(?<candidate>\d(?:[ \u00a0.-]?\d){12,18})(?!\w))`),
    accepts: findCardNumberLength,
  },
  /** ssa.gov/employer/randomization.html: never 000, 666 or 900–999, then not 00, then not 0000. */
  us_ssn: {
    pattern: createPattern(raw`\w\-`, raw`(?!000|666|9)\d{3}([ -])(?!00)\d{2}\1(?!0000)\d{4}(?![\w-])`),
  },
  /** ITU-T E.164: + and at most 15 digits; NANPA: area code and exchange start with 2–9 and do not end in 11. */
  phone: [
    { pattern: createPattern(raw`\w+`, raw`\+[1-9](?:[ \u00a0.()/-]{0,2}\d){7,14}(?!\d)`) },
    {
      pattern: createPattern(
        raw`\w.\-`,
        raw`(?:1[ .-])?(?!\(?\d11)(?:\([2-9]\d{2}\) ?|[2-9]\d{2}[ .-])(?!\d11)[2-9]\d{2}[ .-]\d{4}(?![\w-])`,
      ),
    },
  ],
} satisfies Record<string, Pattern | readonly Pattern[]>

/** Kinds of personal data with a recognizable form. */
export type PiiKind = keyof typeof patterns

export const piiKinds = Object.keys(patterns) as readonly PiiKind[]

export function createPiiFinders(kinds: readonly PiiKind[]): Finder[] {
  return kinds.flatMap((kind) => [patterns[kind]].flat().map((pattern: Pattern) => ({ kind, ...pattern })))
}
