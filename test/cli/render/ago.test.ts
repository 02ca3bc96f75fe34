import { formatAgo } from '../../../src/core/format/format-words.js'
import { formatTimestamp } from '../../../src/cli/output.js'

const now = Date.UTC(2026, 4, 10, 12)
const [minute, hour, day] = [60_000, 3_600_000, 86_400_000]

test.each([
  [0, 'just now'],
  [12_000, '12 s ago'],
  [minute, '1 min ago'],
  [hour - 1, '59 min ago'],
  [hour, '1 h ago'],
  [day - 1, '23 h ago'],
  [day, '1 d ago'],
  [2 * day, '2 d ago'],
  [7 * day - 1, '6 d ago'],
  [7 * day, '2026-05-03'],
  [-hour, 'just now'],
])('%d ms before is: %s', (ms, words) => {
  expect(formatAgo(now - ms, now)).toBe(words)
})

test('a timestamp is in UTC, to the second', () => {
  expect(formatTimestamp(now + 1_234)).toBe('2026-05-10 12:00:01')
})
