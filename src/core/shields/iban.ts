/** Characters of an IBAN, by country: SWIFT's IBAN registry (ISO 13616). */
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

/**
 * How many characters of a text, letters and digits with single separators, are an IBAN; 0 when it begins with none.
 */
export function findIbanLength(text: string): number {
  const length = lengths.get(text.slice(0, 2).toUpperCase())
  if (length === undefined) return 0
  let end = 0
  let compact = ''
  for (; compact.length < length && end < text.length; end += 1) {
    const character = text[end] ?? ''
    if (isAlphanumeric(character)) compact += character
  }
  // A longer word is no IBAN, even if it begins like one.
  if (compact.length < length || isAlphanumeric(text[end] ?? '')) return 0
  return getRemainder(compact) === 1 ? end : 0
}

/** ISO 7064 MOD 97-10: the first four characters go to the end, and letters become numbers (A is 10). */
function getRemainder(iban: string): number {
  let rest = 0
  for (const character of iban.slice(4) + iban.slice(0, 4)) {
    const value = Number.parseInt(character, 36)
    rest = (rest * (value > 9 ? 100 : 10) + value) % 97
  }
  return rest
}

function isAlphanumeric(character: string): boolean {
  return /[A-Za-z0-9]/.test(character)
}
