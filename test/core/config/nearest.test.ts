import { findNearestName } from '../../../src/core/base/text.js'

const keys = ['maxSteps', 'timeoutMs', 'tokenBudget', 'outputTokens', 'costLimit']

describe('nearest', () => {
  test.each([
    ['maxStep', 'maxSteps'],
    ['max_steps', 'maxSteps'],
    ['MAX-STEPS', 'maxSteps'],
    ['timeout', 'timeoutMs'],
    ['tokenBugdet', 'tokenBudget'],
    ['outputToken', 'outputTokens'],
  ])('%s is corrected to %s', (name, expected) => {
    expect(findNearestName(name, keys)).toBe(expected)
  })

  test.each(['colour', '', '_', 'x'.repeat(1_000_000)])('nothing is close to %.20s', (name) => {
    expect(findNearestName(name, keys)).toBeUndefined()
  })

  test('an exact name takes precedence over a similar one', () => {
    expect(findNearestName('tools', ['toolz', 'tools'])).toBe('tools')
    expect(findNearestName('tool', ['toolCalls', 'tools'])).toBe('tools')
  })
})
