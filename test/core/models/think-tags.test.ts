import * as fc from 'fast-check'
import { ThinkSplitter } from '../../../src/core/models/openai/think-tags.js'
import { sampled } from '../../support/extent.js'

function split(...pieces: string[]) {
  const splitter = new ThinkSplitter()
  const deltas = [...pieces.map((piece) => splitter.push(piece)), splitter.flush()]
  return {
    text: deltas.map((delta) => delta.text).join(''),
    reasoning: deltas.map((delta) => delta.reasoning).join(''),
  }
}

test.each([
  ['<think>why</think>so', 'so', 'why'],
  ['\n<think>\nwhy\n</think>\n\nso', 'so', '\nwhy\n'],
  ['so<think>why</think>, then', 'so, then', 'why'],
  ['<think>a</think>b<think>c</think>d', 'bd', 'ac'],
  ['<think>cut off', '', 'cut off'],
  ['<think>cut off</thi', '', 'cut off</thi'],
  ['1 < 2 and <thin air', '1 < 2 and <thin air', ''],
  ['ends in <thi', 'ends in <thi', ''],
  ['<<think>x</think>', '<', 'x'],
  ['write `<think>` first', 'write `<think>` first', ''],
  ['no start</think> tag', 'no start</think> tag', ''],
  ['  indented', '  indented', ''],
  ['   ', '   ', ''],
  ['', '', ''],
  ['<reasoning>why</reasoning>\nso', 'so', 'why'],
  ['<thought>why</thought>so<thinking>then</thinking>', 'so', 'whythen'],
  ['[THINK]why [1] <b>[/THINK]so [1]', 'so [1]', 'why [1] <b>'],
  ['<seed:think>a<seed:cot_budget_reflect>b</seed:think>so', 'so', 'a<seed:cot_budget_reflect>b'],
  ['◁think▷why◁/think▷so', 'so', 'why'],
  ['<thinking>a</think>b</thinking>so', 'so', 'a</think>b'],
  ['[THI', '[THI', ''],
  ['write `[THINK]` or `<thought>` first', 'write `[THINK]` or `<thought>` first', ''],
])('%j shows %j', (content, text, reasoning) => {
  expect(split(content)).toEqual({ text, reasoning })
})

test('the result is the same for any split of the text', () => {
  const word = fc.constantFrom(
    '<think>',
    '</think>',
    '<',
    '`',
    ' ',
    '\n',
    'a',
    '<thi',
    'nk>',
    '</',
    'nking>',
    '<reasoning>',
    '</reasoning>',
    '[THINK]',
    '[/THINK]',
    '[',
    '<thought>',
    '</thought>',
    '<seed:',
    'think>',
    '</seed:think>',
  )
  fc.assert(
    fc.property(fc.array(word), fc.array(fc.nat(60)), (words, cuts) => {
      const whole = words.join('')
      const places = [...cuts, whole.length]
        .map((cut) => Math.min(cut, whole.length))
        .toSorted((a, b) => a - b)
      const pieces = places.map((place, at) => whole.slice(places[at - 1] ?? 0, place))
      expect(split(...pieces)).toEqual(split(whole))
    }),
    { numRuns: sampled(2000) },
  )
})

test('only the start of a tag is held back', () => {
  const splitter = new ThinkSplitter()
  expect(splitter.push('a <')).toEqual({ text: 'a ', reasoning: '' })
  expect(splitter.push('b')).toEqual({ text: '<b', reasoning: '' })
})
