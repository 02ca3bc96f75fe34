import { createWordStart } from './word-start.js'
import { findCardNumberLength } from './card-number.js'
import type { Finder } from './finder.js'
import { findIbanLength } from './iban.js'

function createPattern(characters: string, source: string, flags = 'g'): RegExp {
  return new RegExp(`${createWordStart(characters)}${source}`, flags)
}

const { raw } = String

type Pattern = Omit<Finder, 'kind'>

/** What personal data looks like, as far as it has a form that can be checked. Every pattern runs in linear time. */
const patterns = {
  /** RFC 5321 §4.5.3.1: 64 octets before the @; RFC 1035 §2.3.4: labels of at most 63. */
  email: [
    {
      pattern: createPattern(
        raw`\p{L}\p{N}_.+%\-`,
        raw`[\p{L}\p{N}_.+%\-]{1,64}@(?:[\p{L}\p{N}\-]{1,63}\.){1,8}\p{L}{2,63}`,
        'gu',
      ),
    },
  ],
  /** ISO 13616, with its check digits. */
  iban: [
    {
      pattern: createPattern(
        'A-Za-z0-9',
        raw`(?=(?<candidate>[A-Za-z]{2}\d{2}(?:[ \u00a0-]?[A-Za-z0-9]){11,34}))`,
      ),
      accepts: findIbanLength,
    },
  ],
  /** ISO/IEC 7812, with issuer, length and check digit. */
  credit_card: [
    {
      pattern: createPattern(raw`\w`, raw`(?<!\d[.,])(?=(?<candidate>\d(?:[ \u00a0.-]?\d){12,18})(?!\w))`),
      accepts: findCardNumberLength,
    },
  ],
  /** ssa.gov/employer/randomization.html: never 000, 666 or 900–999, then not 00, then not 0000. */
  us_ssn: [
    { pattern: createPattern(raw`\w\-`, raw`(?!000|666|9)\d{3}([ -])(?!00)\d{2}\1(?!0000)\d{4}(?![\w-])`) },
  ],
  /** ITU-T E.164: + and at most 15 digits; NANPA: area code and exchange begin with 2–9 and end in no 11. */
  phone: [
    { pattern: createPattern(raw`\w+`, raw`\+[1-9](?:[ \u00a0.()/-]{0,2}\d){7,14}(?!\d)`) },
    {
      pattern: createPattern(
        raw`\w.\-`,
        raw`(?:1[ .-])?(?!\(?\d11)(?:\([2-9]\d{2}\) ?|[2-9]\d{2}[ .-])(?!\d11)[2-9]\d{2}[ .-]\d{4}(?![\w-])`,
      ),
    },
  ],
} satisfies Record<string, readonly Pattern[]>

/** Kinds of personal data that are recognizable by their form. */
export type PiiKind = keyof typeof patterns

export const piiKinds = Object.keys(patterns) as readonly PiiKind[]

export function createPiiFinders(kinds: readonly PiiKind[]): Finder[] {
  return kinds.flatMap((kind) => patterns[kind].map((pattern: Pattern) => ({ kind, ...pattern })))
}
