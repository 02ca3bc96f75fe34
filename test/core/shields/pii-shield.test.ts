import * as fc from 'fast-check'
import { type PiiKind, piiKinds, piiShield } from '../../../src/core/shields/index.js'
import { redactedBy, verdictOf } from './support.js'
import { sampled } from '../../support/extent.js'

/** Example numbers published by issuers and standards. */
const examples: [kind: PiiKind, text: string][] = [
  ['email', 'jane.doe+news@mail.example.co.uk'],
  ['email', 'müller@bücher.example'],
  ['iban', 'DE89370400440532013000'],
  ['iban', 'DE89 3704 0044 0532 0130 00'],
  ['iban', 'gb29 nwbk 6016 1331 9268 19'],
  ['iban', 'MT84MALT011000012345MTLCAST001S'],
  ['iban', 'NO9386011117947'],
  ['credit_card', '4111 1111 1111 1111'],
  ['credit_card', '5555-5555-5555-4444'],
  ['credit_card', '2223003122003222'],
  ['credit_card', '378282246310005'],
  ['credit_card', '3782 822463 10005'],
  ['credit_card', '6011.1111.1111.1117'],
  ['credit_card', '30569309025904'],
  ['credit_card', '3530111333300000'],
  ['credit_card', '6200000000000005'],
  ['us_ssn', '219-09-9999'],
  ['us_ssn', '219 09 9999'],
  ['phone', '+14155552671'],
  ['phone', '+49 (0)30 901820'],
  ['phone', '+44 20 7946 0958'],
  ['phone', '(415) 555-2671'],
  ['phone', '415-555-2671'],
  ['phone', '1-415-555-2671'],
]

describe('piiShield', () => {
  it('has an example of every kind here', () => {
    expect(new Set(examples.map(([kind]) => kind))).toEqual(new Set(piiKinds))
  })

  it.each(examples)('redacts a %s: %s', async (kind, text) => {
    expect(await verdictOf(piiShield(), `Reach me: ${text}, or not.`)).toEqual({
      action: 'redact',
      content: `Reach me: [redacted ${kind}], or not.`,
      message: `The text contains personal data: ${kind}.`,
    })
  })

  it.each(examples)('redacts a %s in JSON arguments, which stay JSON: %s', async (kind, text) => {
    const json = JSON.stringify({ note: `first\n${text}\tlast`, plain: text })
    const mark = `[redacted ${kind}]`
    expect(JSON.parse(await redactedBy(piiShield(), json))).toEqual({
      note: `first\n${mark}\tlast`,
      plain: mark,
    })
  })

  it.each([
    ['a card after another number', 'order 12 4111 1111 1111 1111', 'order 12 [redacted credit_card]'],
    ['a card before its code', '4111 1111 1111 1111 123 12/27', '[redacted credit_card] 123 12/27'],
    ['the first of overlapping cards', '4242 4242 4242 4242 4242 4242', '[redacted credit_card] 4242 4242'],
    ['two cards', '4111111111111111 4111111111111111', '[redacted credit_card] [redacted credit_card]'],
    ['an IBAN before a word', 'DE89370400440532013000 IS MINE', '[redacted iban] IS MINE'],
    ['an IBAN after something similar', 'AB12 DE89 3704 0044 0532 0130 00', 'AB12 [redacted iban]'],
    ['two IBANs', 'NO9386011117947 NO9386011117947', '[redacted iban] [redacted iban]'],
    ['an address in brackets', 'Jane <jane@example.com>', 'Jane <[redacted email]>'],
    ['an address in a link', 'mailto:jane@example.com?subject=x', 'mailto:[redacted email]?subject=x'],
    ['an address at the end of a sentence', 'Ask jane@example.com.', 'Ask [redacted email].'],
  ])('finds %s', async (_, text, redacted) => {
    expect(await redactedBy(piiShield(), text)).toBe(redacted)
  })

  it.each([
    'The meeting is on 2024-05-12 at 10:30 in room 4123456789.',
    'ISBN 978-3-16-148410-0, version 1.2.3.4567, order 123456789',
    'uuid 123e4567-e89b-12d3-a456-426614174000',
    'commit 3f2a1b9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a fixes 4111111111111111a',
    '1700000000000 1700000000001 (milliseconds), 0.4111111111111111',
    '4111 1111 1111 1112 and 1234 5678 9012 3456',
    'DE89370400440532013001, DE8937040044053201300, XX89370400440532013000, DE893704004405320130001',
    '000-12-3456, 666-12-3456, 912-12-3456, 219-00-9999, 219-09-0000, 219-09-99991',
    '911-555-2671 1-800, 415-911-2671, +1 2 3, 115-555-2671, +12345678901234567890',
    '@decorator, a@b, me@localhost, price @ 5.99',
    '192.168.100.200, 10.0.0.1:8080, pi is 3.14159265358979323846',
  ])('does not change other text: %s', async (text) => {
    expect(await redactedBy(piiShield(), text)).toBe(text)
  })

  it('checks the check digit: of ten numbers that differ in the last digit, one is a card', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: 99_999_999 }), async (n) => {
        const start = `4${String(n).padStart(14, '1')}`
        const found = await Promise.all(
          Array.from('0123456789', async (digit) => (await verdictOf(piiShield(), start + digit)).action),
        )
        expect(found.filter((action) => action === 'redact')).toHaveLength(1)
      }),
      { numRuns: sampled(30) },
    )
  })

  it('never finds anything in its redacted text', async () => {
    const shield = piiShield()
    const tokens = fc.constantFrom(
      ...examples.map(([, text]) => text),
      '1',
      '+',
      ' ',
      '-',
      '.',
      '@',
      'DE',
      '\\n',
      'a',
    )
    await fc.assert(
      fc.asyncProperty(fc.array(tokens, { maxLength: 12 }), async (parts) => {
        const verdict = await verdictOf(shield, parts.join(''))
        if (verdict.action === 'redact')
          expect(await verdictOf(shield, verdict.content)).toEqual({ action: 'allow' })
        else expect(verdict.action).toBe('allow')
      }),
      { numRuns: sampled(300) },
    )
  })

  it('finds only the selected kinds', async () => {
    const shield = piiShield({ kinds: ['iban'], action: 'warn' })
    expect((await verdictOf(shield, 'jane@example.com')).action).toBe('allow')
    expect(await verdictOf(shield, 'NO9386011117947')).toMatchObject({ action: 'warn' })
  })
})
