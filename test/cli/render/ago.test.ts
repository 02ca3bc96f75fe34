import { formatAgo, formatTimestamp } from '../../../src/cli/render/format-time.js'

const now = Date.UTC(2026, 4, 10, 12)
const [minute, hour, day] = [60_000, 3_600_000, 86_400_000]

test.each([
  [0, 'just now'],
  [minute - 1, 'just now'],
  [minute, '1 min ago'],
  [hour - 1, '59 min ago'],
  [hour, '1 h ago'],
  [day - 1, '23 h ago'],
  [day, 'yesterday'],
  [2 * day, '2 days ago'],
  [7 * day - 1, '6 days ago'],
  [7 * day, '2026-05-03'],
  [-hour, 'just now'],
])('%d ms before is: %s', (ms, words) => {
  expect(formatAgo(now - ms, now)).toBe(words)
})

test('a timestamp is in UTC, to the second', () => {
  expect(formatTimestamp(now + 1_234)).toBe('2026-05-10 12:00:01')
})
