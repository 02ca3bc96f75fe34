import * as fc from 'fast-check'
import { SimulatedClock } from 'xstate'
import {
  HoldBack,
  type HoldBackOptions,
  patternShield,
  runShields,
  type ShieldOutcome,
} from '../../../src/core/shields/index.js'
import { refusal } from './support.js'
import { sampled } from '../../support/extent.js'
import { unicodeText } from '../../support/unicode-text.js'

const clear = (content: string): Promise<ShieldOutcome> =>
  Promise.resolve({ action: 'allow', message: null, content, findings: [] })

function checkWith(patterns: RegExp[], action: 'block' | 'redact', replacement?: string) {
  const shield = patternShield({ patterns, action, ...(replacement !== undefined && { replacement }) })
  const signal = new AbortController().signal
  return (text: string) =>
    runShields([shield], text, { point: 'output', signal, clock: new SimulatedClock() })
}

/** A hold-back that collects its released text. */
function holdBack(options: Partial<HoldBackOptions>) {
  const pieces: string[] = []
  const held = new HoldBack({ check: clear, release: (text) => pieces.push(text), ...options })
  return { held, pieces }
}

async function settle(): Promise<void> {
  for (let i = 0; i < 60; i += 1) await Promise.resolve()
}

/** Text split into arbitrary pieces, with arbitrary delays. */
async function stream(held: HoldBack, deltas: readonly string[], pauses: readonly number[]): Promise<void> {
  for (const [index, delta] of deltas.entries()) {
    held.write(delta)
    for (let i = 0; i < (pauses[index % pauses.length] ?? 0); i += 1) await Promise.resolve()
  }
}

const pauses = fc.array(fc.nat(40), { minLength: 1, maxLength: 5 })

function deltasOf(...tokens: string[]): fc.Arbitrary<string[]> {
  return fc.array(fc.oneof(fc.constantFrom(...tokens), unicodeText({ maxLength: 4 })), {
    maxLength: 80,
  })
}

describe('released text', () => {
  it('is delayed by no more than the window', async () => {
    const { held, pieces } = holdBack({ window: 10 })
    for (const letter of 'abcdefghij') held.write(letter)
    await settle()
    expect(pieces).toEqual([])
    held.write('k')
    await settle()
    expect(pieces).toEqual(['a'])
  })

  it('is delayed by no more than the window, for any window, overlap and deltas', async () => {
    const options = fc
      .integer({ min: 1, max: 50 })
      .chain((window) => fc.record({ window: fc.constant(window), overlap: fc.nat(window) }))
    await fc.assert(
      fc.asyncProperty(options, fc.array(fc.integer({ min: 1, max: 9 })), async (sizes, lengths) => {
        const { held } = holdBack(sizes)
        let written = 0
        for (const length of lengths) {
          held.write('x'.repeat(length))
          written += length
          await settle()
          expect(held.released.length > 0).toBe(written > sizes.window)
        }
      }),
    )
  })

  it('never contains a forbidden word, nor the start of one', async () => {
    const check = checkWith([/secret/i], 'block')
    await fc.assert(
      fc.asyncProperty(
        deltasOf('secret', 'sec', 'ret', 'se', 'cret', 's', 'SECRET', ' and so on '),
        pauses,
        fc.integer({ min: 5, max: 40 }),
        async (deltas, waits, window) => {
          const { held, pieces } = holdBack({ window, check })
          await stream(held, deltas, waits)
          const { text, released } = await held.finish()
          expect(text).toBe(deltas.join(''))
          expect(pieces.join('')).toBe(released)
          const at = text.search(/secret/i)
          expect(text.startsWith(released)).toBe(true)
          if (at !== -1) expect(released.length).toBeLessThanOrEqual(at)
        },
      ),
      { numRuns: sampled(150) },
    )
  })

  it('is always a prefix of the cleared text, and is complete at the end', async () => {
    // At most ten characters, one more than the smallest window. No redaction triggers another one.
    const secret = /key-\d{1,6}|<[a-z0-9-]{0,8}>/
    for (const replacement of ['*', '[a long replacement]']) {
      const check = checkWith([secret], 'redact', replacement)
      await fc.assert(
        fc.asyncProperty(
          deltasOf(
            'key-12',
            'ke',
            'y-',
            '3',
            '<key-1',
            '<key-',
            '1',
            '<a',
            '>',
            '<',
            ' and so on ',
            '*',
            '[a long',
          ),
          pauses,
          fc.integer({ min: 9, max: 30 }),
          async (deltas, waits, window) => {
            const { held, pieces } = holdBack({ window, check })
            await stream(held, deltas, waits)
            const { text, released } = await held.finish()
            const { action, content } = await check(text)
            expect(pieces.join('')).toBe(released)
            if (action === 'block') return
            expect(content.startsWith(released)).toBe(true)
            expect(released + (held.remainder(content) ?? 'nothing')).toBe(content)
          },
        ),
        { numRuns: sampled(300) },
      )
    }
  })

  it('never ends within a surrogate pair', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom('😀', '\ud83d', '\ude00', 'a'), { maxLength: 60 }),
        pauses,
        fc.integer({ min: 1, max: 8 }).chain((window) => fc.tuple(fc.constant(window), fc.nat(window))),
        async (deltas, waits, [window, overlap]) => {
          const { held, pieces } = holdBack({ window, overlap })
          await stream(held, deltas, waits)
          const { text } = await held.finish()
          let end = 0
          for (const piece of pieces) {
            end += piece.length
            expect(text.slice(end - 1, end + 1)).not.toMatch(/^[\ud800-\udbff][\udc00-\udfff]$/)
          }
        },
      ),
    )
  })

  it('continues after a redaction once enough text has followed it', async () => {
    const { held, pieces } = holdBack({ window: 8, check: checkWith([/key-\d+/], 'redact', '[key]') })
    for (const delta of ['The key is ', 'key-12345', ' and', ' that', ' is all', ' there is']) {
      held.write(delta)
      await settle()
    }
    expect(pieces.join('')).toMatch(/^The key is \[key\] and that/)
    expect(pieces.join('')).not.toContain('12345')
  })

  it('contains no redaction that a later one may replace', async () => {
    const signal = new AbortController().signal
    const shield = patternShield({
      patterns: [
        { name: 'long', pattern: /abcde/ },
        { name: 'short', pattern: /a/ },
      ],
      action: 'redact',
      replacement: (kind) => (kind === 'long' ? '1' : '[much longer]'),
    })
    const check = (text: string) => runShields([shield], text, { point: 'output', signal })
    for (const start of ['a', 'ab', 'abc', 'abcd']) {
      const { held, pieces } = holdBack({ window: 4, check })
      held.write(`xxxx${start}`)
      await settle()
      held.write('abcde'.slice(start.length))
      await settle()
      expect(held.remainder('xxxx1')).not.toBeNull()
      expect(pieces.join('')).toBe('xxxx')
    }
  })

  it('stops once a redaction contradicts it', async () => {
    let calls = 0
    const check = (text: string): Promise<ShieldOutcome> => {
      calls += 1
      const content = calls < 2 ? text : `Sorry. ${text}`
      return Promise.resolve({ action: 'redact', message: null, content, findings: [] })
    }
    const { held, pieces } = holdBack({ window: 4, check })
    for (let i = 0; i < 20; i += 1) {
      held.write('abc')
      await settle()
    }
    expect({ pieces, calls }).toEqual({ pieces: ['ab'], calls: 2 })
    expect(held.blocked).toBe(false)
    expect(held.remainder('Sorry.')).toBeNull()
  })
})

describe('a text that continues another', () => {
  it('is checked together with it, and never shows both halves of a forbidden text', async () => {
    const secret = 'xyzzy'
    await fc.assert(
      fc.asyncProperty(fc.nat(secret.length), deltasOf('a', ' '), pauses, async (at, deltas, waits) => {
        const text = `before ${secret.slice(0, at)}`
        const check = checkWith([/xyzzy/], 'block')
        const { held, pieces } = holdBack({ window: 8, check, continues: { text, released: text } })
        await stream(held, [secret.slice(at), ...deltas], waits)
        const { blocked, released } = await held.finish()
        expect(released).toBe(text + pieces.join(''))
        expect(
          pieces.join('') === '' || !`${text}${secret.slice(at)}${deltas.join('')}`.includes(secret),
        ).toBe(true)
        expect(blocked && pieces.length > 0).toBe(false)
      }),
    )
  })

  it('is shown once it is longer than the window itself', async () => {
    const { held, pieces } = holdBack({
      window: 10,
      continues: { text: 'x'.repeat(50), released: 'x'.repeat(50) },
    })
    held.write('abcdefghij')
    await settle()
    expect(pieces).toEqual([])
    held.write('k')
    await settle()
    expect(pieces).toEqual(['a'])
  })
})

describe('a block', () => {
  it('is final: nothing is released or checked after it', async () => {
    let calls = 0
    const block = checkWith([/bad/], 'block')
    const { held, pieces } = holdBack({
      window: 4,
      check: (text) => {
        calls += 1
        return block(text)
      },
    })
    held.write('all is good ')
    await settle()
    held.write('bad')
    await settle()
    const before = { released: held.released, calls }
    held.write(' good good good good good')
    await settle()
    expect({ released: held.released, calls }).toEqual(before)
    expect(pieces).toEqual(['all is g'])
    expect(await held.finish()).toMatchObject({ blocked: true, released: 'all is g' })
  })

  it.each<[string, Partial<HoldBackOptions>]>([
    ['rejects', { check: () => Promise.reject(new Error('no')) }],
    [
      'throws',
      {
        check: () => {
          throw new Error('no')
        },
      },
    ],
    [
      'cannot be released',
      {
        release: () => {
          throw new Error('no')
        },
      },
    ],
  ])('results from a check that %s', async (_, options) => {
    const { held } = holdBack({ window: 2, ...options })
    held.write('abcdef')
    await settle()
    held.write('abcdef')
    expect(await held.finish()).toMatchObject({ text: 'abcdefabcdef', blocked: true })
  })
})

describe('the checks', () => {
  it('see the complete text so far, one at a time', async () => {
    const seen: string[] = []
    const answers: (() => void)[] = []
    const { held, pieces } = holdBack({
      window: 4,
      check: (text) => {
        seen.push(text)
        return new Promise((resolve) => {
          answers.push(() => resolve({ action: 'allow', message: null, content: text, findings: [] }))
        })
      },
    })
    held.write('abcdef')
    held.write('ghi')
    held.write('jkl')
    expect(seen).toEqual(['abcdef'])
    answers[0]?.()
    await settle()
    expect({ seen, pieces }).toEqual({ seen: ['abcdef', 'abcdefghijkl'], pieces: ['ab'] })
  })

  it('read a long text a bounded number of times', async () => {
    let read = 0
    const { held } = holdBack({
      check: (text) => {
        read += text.length
        return clear(text)
      },
    })
    const length = 200_000
    for (let i = 0; i < length; i += 4) {
      held.write('abcd')
      await Promise.resolve()
    }
    const { released } = await held.finish()
    expect(released.length).toBeGreaterThan(length * 0.95)
    expect(read).toBeLessThan(70 * length)
  })

  it('are over when finish() resolves, and text that they clear later is not released', async () => {
    let answer = (): void => undefined
    const { held, pieces } = holdBack({
      window: 2,
      check: (text) =>
        new Promise((resolve) => {
          answer = () => resolve({ action: 'allow', message: null, content: text, findings: [] })
        }),
    })
    held.write('abcdef')
    const end = held.finish()
    const first = await Promise.race([end, settle()])
    expect(first).toBeUndefined()
    answer()
    await end
    expect(pieces).toEqual([])
  })
})

it.each<[string, Partial<HoldBackOptions>, RegExp]>([
  ['a window of 0', { window: 0 }, /window must be/],
  ['half a character', { window: 1.5 }, /window must be/],
  ['an endless window', { window: Infinity }, /window must be/],
  ['an overlap beyond the window', { window: 5, overlap: 6 }, /between 0 and the window size \(5\)/],
  ['a negative overlap', { overlap: -1 }, /overlap must be/],
])('refuses %s', (_, options, words) => {
  const { code, message } = refusal(() => holdBack(options))
  expect(code).toBe('invalid_option')
  expect(message).toMatch(words)
})
