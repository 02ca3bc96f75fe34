export interface OutcomeDigests {
  digest: string
  /** The digest without volatile parts and digits. */
  shape: string
}

const unit = String.raw`(?:[nuµμm]?s|sec(?:ond)?s?|m(?:in(?:ute)?s?)?|h(?:(?:ou)?rs?)?|m(?:illi|icro)seconds?)`
const apart = String.raw`["'\\ ]{0,4}`

/**
 * Volatile parts of results. Dates and the leading digits of an epoch time are kept, because a different day is a
 * different answer. Other numbers show progress. For speed, each pattern starts with a character and is bounded.
 */
const volatile = new RegExp(
  [
    // Clock times, but not column numbers (a.ts:10:15).
    String.raw`\d(?<=(?:^|[^\w:]|\d-\d\dT)\d)\d?:[0-5]\d(?::[0-5]\d)?(?![\d:]*:\d)(?:[.,]\d{1,9})?(?:Z|[+-]\d\d(?::?\d\d)?)?(?!\w)`,
    String.raw`\d{5}(?<=(?<![\w.])1\d{9})(?:\d{3}){0,3}(?:\.\d{1,19})?(?!\w)`,
    // Durations such as 1.5s, 2h30m and 12 ms. Amounts after a currency sign are prices.
    String.raw`\d(?<![\w.$€£]\d)[\d.]{0,36}(?:${unit}(?:[\d.]{1,20}${unit}){0,3}| (?!m\b)${unit})(?!\w)`,
    // UUIDs, and hexadecimal words with both digits and letters.
    String.raw`[\da-f]{8}(?<!\w[\da-f]{8})(?:(?:-[\da-f]{4}){3}-[\da-f]{12}|[\da-f]{4,120}(?<=(?:\d[a-f]|[a-f]\d)[\da-f]{0,126}))(?!\w)`,
    String.raw`0x(?<!\w0x)[\da-f]{1,64}(?!\w)`,
    // Ids that change with each call. Ids of items that people work with are part of the answer.
    String.raw`((?:request|trace|span|correlation|session|connection|invocation|process)[ _-]?id)${apart}[:=]${apart}[\w.-]{1,128}`,
    String.raw`(pid)(?<![a-z]pid)["'\\ :=]{1,8}[\w.-]{1,128}`,
    String.raw`\(node:\d{1,9}(?=\))`,
    String.raw`/tmp/[\w./+-]{1,512}`,
    // Line numbers in shell errors.
    String.raw`sh(?<=(?<![\w.])(?:ba|da|z|k|a|c|tc|fi)?sh): ?(?:line )?\d{1,9}(?=:)`,
  ].join('|'),
  'gi',
)

const days = /\d{4}-\d\d?-\d\d?T?/g

/** A letter or digit outside JSON keys. */
const other = /[a-z\d](?!\w{0,64}"\s?:)|[^\0-\x7f·]/i

/** Maximum length of a text that is compared as a whole. Only the two ends of a longer text are compared. */
const longest = 16_000

/** Takes linear time. Not cryptographic, because a forged collision would only make a guard act too early. */
export function digestOutcome(text: string): OutcomeDigests {
  if (text.length <= longest) return digestText(text)
  const head = text.slice(0, longest / 2)
  const tail = text.slice(-longest / 2)
  // Cuts at line ends, so that a longer time in one line does not shift the others.
  const end = head.lastIndexOf('\n')
  return digestText(`${end > 0 ? head.slice(0, end) : head}\n…\n${tail.slice(tail.indexOf('\n') + 1)}`)
}

function digestText(text: string): OutcomeDigests {
  const rest = text.replace(volatile, '$1$2·')
  // A result that consists only of volatile parts (a time, a duration, a new id) is compared as a whole.
  const compared = rest === text || other.test(rest.replace(days, '')) ? rest : text
  let [low, high, shape] = [-0x7ee3623b, 0x41c6ce57, 0x2b3c4d5e]
  for (let at = 0; at < compared.length; at += 1) {
    const code = compared.charCodeAt(at)
    low = Math.imul(low ^ code, 0x01000193)
    high = Math.imul(high ^ low, 0x85ebca6b)
    high ^= high >>> 13
    if (code < 0x30 || code > 0x39) shape = Math.imul(shape ^ code, 0x01000193)
  }
  return {
    digest: (toBase36(low ^ (low >>> 15)) + toBase36(high)).slice(0, 9),
    shape: toBase36(shape ^ (shape >>> 15)).slice(-5),
  }
}

function toBase36(number: number): string {
  return (number >>> 0).toString(36)
}
