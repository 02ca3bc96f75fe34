import { formatTools, nameCalls } from '../../guards/lib/words.js'
import * as facts from './facts.js'

const call = (name: string) => facts.call({ name })

test('tools are named once each, at most three of them', () => {
  expect(formatTools(['look', 'look', 'read'].map(call))).toBe('look, read')
  expect(formatTools(['a', 'b', 'c', 'd', 'e'].map(call))).toBe('a, b, c and 2 more')
})

test('a tool without a name is shown as quotes, so that a sentence has no gap', () => {
  expect(nameCalls([call(''), call('look')])).toMatchObject({ tools: "'', look", calls: "''({}); look({})" })
})
