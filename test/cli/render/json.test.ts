import * as fc from 'fast-check'
import { formatJsonLine } from '../../../src/cli/output.js'
import { unicodeText } from '../../support/unicode-text.js'

test('a line of JSON is the same value, without control characters for a terminal', () => {
  const unit = fc.oneof(
    unicodeText({ maxLength: 5 }),
    fc.constantFrom('\u001b', '\u009b', '\u007f', '\u202e', '\u2066', '\\', '"', '\n'),
  )
  fc.assert(
    fc.property(fc.array(unit), (parts) => {
      const value = { text: parts.join('') }
      const line = formatJsonLine(value)
      expect(JSON.parse(line)).toEqual(value)
      expect(line.slice(0, -1)).not.toMatch(/[\p{Cc}\u202a-\u202e\u2066-\u2069]/u)
    }),
  )
})
