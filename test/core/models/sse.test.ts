import * as fc from 'fast-check'
import { createEventParser } from '../../../src/core/models/openai/answer-reader.js'
import { sampled } from '../../support/extent.js'

function parse(...pieces: string[]) {
  const events: unknown[] = []
  const parser = createEventParser((value, event) => events.push(event === '' ? value : [event, value]))
  for (const piece of pieces) parser.feed(piece)
  parser.feed('\n\n')
  return events
}

test.each([
  ['a line feed', 'data: {"a":1}\n\ndata: {"a":2}\n\n'],
  ['a carriage return and a line feed', 'data: {"a":1}\r\n\r\ndata: {"a":2}\r\n\r\n'],
  ['a carriage return', 'data: {"a":1}\r\rdata: {"a":2}\r\r'],
  ['no blank line', 'data: {"a":1}\ndata: {"a":2}\n'],
  ['no last line end', 'data: {"a":1}\n\ndata: {"a":2}'],
  ['no space after the colon', 'data:{"a":1}\n\ndata:{"a":2}\n\n'],
  ['comments between', ': ping\n\ndata: {"a":1}\n: ping\n\n\n\ndata: {"a":2}\n\n'],
  ['other fields', 'id: 1\nretry: 5\ndata: {"a":1}\n\nunknown\ndata: {"a":2}\n\n'],
  ['data over several lines', 'data: {"a":\ndata: 1}\n\ndata: {\ndata: "a":2\ndata: }\n\n'],
])('events with %s are read', (_form, text) => {
  expect(parse(text)).toEqual([{ a: 1 }, { a: 2 }])
})

test('the name of an event does not apply to the next one', () => {
  expect(parse('event: error\ndata: {"a":1}\n\ndata: {"a":2}\n\n')).toEqual([['error', { a: 1 }], { a: 2 }])
})

test('data that is not an object is returned as text', () => {
  expect(parse('data: [DONE]\n\ndata: ping\n\ndata: {broken}\n\ndata:\n\n')).toEqual([
    '[DONE]',
    'ping',
    '{broken}',
  ])
})

test('an event is emitted as soon as it ends', () => {
  const events: unknown[] = []
  const parser = createEventParser((value) => events.push(value))
  parser.feed('data: {"a":1}\n\ndata: [DO')
  expect(events).toEqual([{ a: 1 }])
  parser.feed('NE]\n\n')
  expect(events).toEqual([{ a: 1 }, '[DONE]'])
})

test('the events are the same under any chunking', () => {
  const line = fc.constantFrom(
    'data: {"a":1}',
    'data:{"b":"\\u00e9"}',
    'data: {"c":',
    'data: 1}',
    ': hi',
    'event: x',
    '',
    'data: [DONE]',
  )
  const ending = fc.constantFrom('\n', '\r\n', '\r')
  fc.assert(
    fc.property(fc.array(fc.tuple(line, ending)), fc.func(fc.integer({ min: 1, max: 9 })), (lines, size) => {
      const text = lines.flat().join('')
      const pieces: string[] = []
      for (let at = 0; at < text.length; ) {
        const end = at + size(at)
        pieces.push(text.slice(at, end))
        at = end
      }
      expect(parse(...pieces)).toEqual(parse(text))
    }),
    { numRuns: sampled(1000) },
  )
})

test('a line that never ends is refused instead of filling memory', () => {
  const megabyte = 'x'.repeat(1024 * 1024)
  expect(() => parse('data: {"a":"', ...Array.from({ length: 65 }, () => megabyte))).toThrow(
    /larger than 64 MB/,
  )
})
