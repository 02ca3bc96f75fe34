import * as fc from 'fast-check'
import { patternShield, type PatternShieldOptions } from '../../../src/core/shields/index.js'
import { redactedBy, refusal, verdictOf } from './support.js'

describe('patternShield', () => {
  it('blocks, warns or allows', async () => {
    const patterns = [{ name: 'project name', pattern: /falcon/i }]
    const message = 'The text matches: project name.'
    const blocks = patternShield({ patterns, action: 'block' })
    expect(await verdictOf(blocks, 'Project Falcon')).toEqual({ action: 'block', message })
    expect(await verdictOf(blocks, 'Project Eagle')).toEqual({ action: 'allow' })
    const warns = patternShield({ patterns, action: 'warn', message: 'Careful.' })
    expect(await verdictOf(warns, 'falcon')).toEqual({ action: 'warn', message: 'Careful.' })
  })

  it('redacts every match, and names its kind', async () => {
    const shield = patternShield({
      patterns: [/\bfoo\b/, { name: 'number', pattern: /\d+/ }],
      action: 'redact',
      replacement: (kind) => `<${kind === 'number' ? 'n' : 'word'}>`,
    })
    expect(await verdictOf(shield, 'foo 12 foo 3')).toEqual({
      action: 'redact',
      content: '<word> <n> <word> <n>',
      message: 'The text matches: pattern 1, number.',
    })
  })

  it.each(['', 'g', 'y', 'gy', 'i', 'gi', 'u', 'gu', 's', 'm'])(
    'returns the same verdict each time, with any flags (%s)',
    async (flags) => {
      const pattern = new RegExp('x1', flags)
      pattern.lastIndex = 3
      const shield = patternShield({ patterns: [pattern], action: 'block' })
      for (let i = 0; i < 3; i += 1) {
        expect((await verdictOf(shield, 'a x1 x1')).action).toBe('block')
        expect((await verdictOf(shield, 'x1')).action).toBe('block')
      }
      expect(pattern.lastIndex).toBe(3)
    },
  )

  it('does not change if the caller changes the pattern', async () => {
    const pattern = /x1/
    const shield = patternShield({ patterns: [pattern], action: 'block' })
    pattern.compile('y2')
    expect((await verdictOf(shield, 'x1')).action).toBe('block')
  })

  it('uses a replacement literally', async () => {
    const shield = patternShield({ patterns: [/a(b)/], action: 'redact', replacement: "$1$&$'" })
    expect(await redactedBy(shield, 'ab')).toBe("$1$&$'")
  })

  it('keeps the match of the group keep', async () => {
    const shield = patternShield({ patterns: [/(?<prefix>pin: )\d{4}/], action: 'redact', replacement: '…' })
    expect(await redactedBy(shield, 'pin: 1234, pin: 5678')).toBe('pin: …, pin: …')
  })

  it('redacts matches that a redaction creates', async () => {
    const shield = patternShield({ patterns: [/secret/], action: 'redact', replacement: '' })
    expect(await redactedBy(shield, 'sesecretcret!')).toBe('!')
  })

  it('blocks text that it cannot redact', async () => {
    const endless = patternShield({ patterns: [/ab/], action: 'redact', replacement: 'a' })
    expect(await verdictOf(endless, `a${'b'.repeat(50)}`)).toMatchObject({
      action: 'block',
      message: 'The text matches: pattern 1. It cannot be redacted.',
    })
    const nothingToReplace = patternShield({ patterns: [/(?=.*a)(?=.*b)/], action: 'redact' })
    expect(await verdictOf(nothingToReplace, 'ba')).toMatchObject({ action: 'block' })
  })

  it('lets no match pass, in any text', async () => {
    const patterns = [/ab+/g, /b(?=c)/y, /c{2}/u, /[ac]a/]
    const shield = patternShield({ patterns, action: 'redact', replacement: '' })
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 60 }), async (text) => {
        const verdict = await verdictOf(shield, text)
        if (verdict.action === 'block') return
        const content = verdict.action === 'redact' ? verdict.content : text
        for (const { source } of patterns) expect(content).not.toMatch(new RegExp(source))
      }),
    )
  })

  it.each<[string, unknown, RegExp]>([
    ['no options', undefined, /the options must be an object/],
    ['no patterns', { action: 'block' }, /patterns must be an array of at least one/],
    ['an empty list', { patterns: [], action: 'block' }, /at least one/],
    ['a string instead of a pattern', { patterns: ['a'], action: 'block' }, /patterns\[0\] must be a RegExp/],
    [
      'a hole instead of a pattern',
      { patterns: Array(1), action: 'block' },
      /patterns\[0\] must be a RegExp/,
    ],
    [
      'null instead of a pattern',
      { patterns: [/a/, null], action: 'block' },
      /patterns\[1\] must be a RegExp/,
    ],
    ['a name without a pattern', { patterns: [{ name: 'a' }], action: 'block' }, /patterns\[0\] must be/],
    [
      'a pattern with an empty name',
      { patterns: [{ name: ' ', pattern: /a/ }], action: 'block' },
      /name must be/,
    ],
    ['a pattern that matches everything', { patterns: [/x*/], action: 'block' }, /matches the empty string/],
    ['no action', { patterns: [/a/] }, /action must be/],
    ['an unknown action', { patterns: [/a/], action: 'deny' }, /action must be/],
    ['an invalid message', { patterns: [/a/], action: 'block', message: 5 }, /message must be a string/],
    ['an invalid replacement', { patterns: [/a/], action: 'redact', replacement: 5 }, /replacement must be/],
    [
      'a replacement function that returns no string',
      { patterns: [/a/], action: 'redact', replacement: () => 5 },
      /must be/,
    ],
    [
      'a replacement that matches',
      { patterns: [/e/], action: 'redact' },
      /matches the pattern that it replaces/,
    ],
    ['a mistyped option', { patterns: [/a/], action: 'block', pattern: /a/ }, /no option 'pattern'/],
    ['an invalid name', { patterns: [/a/], action: 'block', name: 'a b' }, /cannot be named/],
  ])('refuses %s with a sentence', (_, options, words) => {
    const { code, message } = refusal(() => patternShield(options as PatternShieldOptions))
    expect(code).toBe('invalid_shield')
    expect(message).toMatch(words)
  })
})
