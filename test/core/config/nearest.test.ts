import { nearest } from '../../../src/core/base/nearest.js'

const keys = ['maxSteps', 'timeoutMs', 'tokenBudget', 'outputTokens', 'costLimit']

describe('nearest', () => {
  test.each([
    ['maxStep', 'maxSteps'],
    ['max_steps', 'maxSteps'],
    ['MAX-STEPS', 'maxSteps'],
    ['timeout', 'timeoutMs'],
    ['tokenBugdet', 'tokenBudget'],
    ['outputToken', 'outputTokens'],
  ])('%s is meant to be %s', (name, meant) => {
    expect(nearest(name, keys)).toBe(meant)
  })

  test.each(['colour', '', '_', 'x'.repeat(1_000_000)])('nothing is near %.20s', (name) => {
    expect(nearest(name, keys)).toBeUndefined()
  })

  test('an exact name wins over a similar one', () => {
    expect(nearest('tools', ['toolz', 'tools'])).toBe('tools')
  })
})
