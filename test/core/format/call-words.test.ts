import * as fc from 'fast-check'
import {
  formatToolName,
  formatCallId,
  escapeInvisible,
  formatArguments,
  formatArgumentsJson,
} from '../../../src/core/format/format-call.js'
import { unicodeText } from '../../support/unicode-text.js'

test.each([
  ['{"path":"a.txt","n":3}', 'path: "a.txt", n: 3'],
  ['{}', ''],
  ['', ''],
  ['[1,2]', '[1,2]'],
  ['{"broken', '{"broken'],
  ['{"text":"a\\u001b[31m"}', 'text: "a\\u001b[31m"'],
])('the arguments %j are shown as %j', (json, shown) => {
  expect(formatArguments(json, 80)).toBe(shown)
})

test.each([
  ['{"(y)es … (note: \\"\\", command":"rm -rf ~"}', '"(y)es … (note: \\"\\", command": "rm -rf ~"'],
  ['{"a: 1, b":2}', '"a: 1, b": 2'],
  ['{"ok":1,"":2,"1":3}', '"1": 3, ok: 1, "": 2'],
  ['{"command":"echo \u202egnp.exe"}', 'command: "echo \\u202egnp.exe"'],
  ['{"user":"admin\u200b"}', 'user: "admin\\u200b"'],
  ['{"path":"a\u00a0b\u2028c"}', 'path: "a\\u00a0b\\u2028c"'],
  ['{"hidden":"\u{e0041}"}', 'hidden: "\\udb40\\udc41"'],
  ['{"half":"\\ud800"}', 'half: "\\ud800"'],
  [`{"command":"ls${' '.repeat(40)}; rm -rf ~"}`, 'command: "ls⟨40 spaces⟩; rm -rf ~"'],
  ['{"n":1,"n":2}', 'n: 2'],
  ['{"__proto__":{"n":1},"n":2}', 'n: 2'],
  ['{"broken\u0007', '{"broken\\u0007'],
])('hidden or misleading characters in the arguments %j are shown: %j', (json, shown) => {
  expect(formatArguments(json, 200)).toBe(shown)
})

test('every character that a terminal would not show is visible, and no name imitates our own text', () => {
  const text = unicodeText()
  fc.assert(
    fc.property(fc.dictionary(text, text, { noNullPrototype: true }), (input) => {
      const shown = formatArguments(JSON.stringify(input), Infinity)
      expect(shown).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}]/u)
      const names = Object.keys(input).filter(
        (key) => key !== '__proto__' && !/^[A-Za-z_$][\w$-]*$/.test(key),
      )
      for (const key of names) expect(shown).toContain(`${escapeInvisible(JSON.stringify(key))}: "`)
      const spaced = Object.values(input).some((value) => value.includes('   '))
      const whole = formatArgumentsJson(JSON.stringify(input))
      // Same lookup as in tools, where a property with that name would set the prototype.
      const { ['__proto__']: _dropped, ...read } = JSON.parse(JSON.stringify(input)) as Record<
        string,
        unknown
      >
      if (!spaced) expect(JSON.parse(whole)).toEqual(read)
    }),
    { examples: [[JSON.parse('{"__proto__":"x","n":"1"}')]] },
  )
})

test('names and ids that are not plain words are quoted', () => {
  expect(formatToolName('send_mail')).toBe('send_mail')
  expect(formatToolName('pay(to: "Ann")? (y)es')).toBe('"pay(to: \\"Ann\\")? (y)es"')
  expect(formatCallId('call_1/call_2@9f3c')).toBe('call_1/call_2@9f3c')
  expect(formatCallId('a] needs nothing [b\u001b')).toBe('"a] needs nothing [b\\u001b"')
})
