import { classifyAnswer, type ResponseKind } from '../../guards/completion.js'
import { recoverEmptyAnswer } from '../../guards/unusable-answer.js'
import { isAtStepCap, formatStepCapMessage } from '../../guards/call-caps.js'

const of = (text: string, calls: number, finishReason: string | null, refusal: string | null = null) =>
  classifyAnswer({ text, calls, finishReason, refusal })

describe('a response is', () => {
  test.each<[ResponseKind, string, number, string | null]>([
    ['answer', 'hello', 0, 'stop'],
    ['answer', 'hello', 0, null],
    ['answer', 'hello', 0, 'something_new'],
    ['answer', 'hello', 0, 'tool_calls'],
    ['calls', '', 1, 'tool_calls'],
    ['calls', 'let me see', 2, 'stop'],
    ['calls', '', 1, null],
    ['calls', '', 1, 'something_new'],
    ['empty', '', 0, 'stop'],
    ['empty', ' \n\t\u00a0', 0, 'stop'],
    ['empty', '', 0, 'tool_calls'],
    ['empty', '', 0, null],
    ['truncated', 'hel', 0, 'length'],
    ['truncated', '', 0, 'length'],
    ['truncated', 'hel', 0, 'max_tokens'],
    ['truncated', 'hel', 0, 'MAX_TOKENS'],
    ['truncated', 'hel', 0, 'model_length'],
    ['truncatedCalls', '', 1, 'length'],
    ['truncatedCalls', 'hel', 3, 'MAX_TOKENS'],
    ['filtered', '', 0, 'content_filter'],
    ['filtered', 'hel', 0, 'SAFETY'],
    ['filtered', '', 2, 'content_filter'],
  ])('%s: %j with %i calls and %s', (kind, text, calls, reason) => {
    expect(of(text, calls, reason)).toBe(kind)
  })

  test('a refusal, immediately and with any other content', () => {
    expect(of('', 0, 'stop', 'I cannot help with that.')).toBe('refusal')
    expect(of('', 1, 'tool_calls', 'I cannot help with that.')).toBe('refusal')
    expect(of('', 0, 'length', 'I cannot help')).toBe('refusal')
    expect(of('No.', 0, 'refusal')).toBe('refusal')
    expect(of('hello', 0, 'stop', '  ')).toBe('answer')
  })
})

describe('an empty answer', () => {
  const config = { reprompts: 2, retries: 1 }

  test('is requested again at most twice after a failed tool', () => {
    const facts = { afterFailure: true, retries: 0 }
    expect([0, 1, 2].map((reprompts) => recoverEmptyAnswer({ ...facts, reprompts }, config))).toEqual([
      'reprompt',
      'reprompt',
      'give_up',
    ])
  })

  test('is otherwise retried once', () => {
    const facts = { afterFailure: false, reprompts: 0 }
    expect([0, 1].map((retries) => recoverEmptyAnswer({ ...facts, retries }, config))).toEqual([
      'retry',
      'give_up',
    ])
  })

  test('is accepted if the guard is off', () => {
    expect(recoverEmptyAnswer({ afterFailure: true, reprompts: 0, retries: 0 }, null)).toBe('accept')
  })
})

describe('the step cap', () => {
  test('is reached exactly at its number', () => {
    expect([49, 50, 51].map((steps) => isAtStepCap(steps, 50))).toEqual([false, true, true])
    expect(isAtStepCap(1_000_000, null)).toBe(false)
  })

  test('names its key', () => {
    expect(formatStepCapMessage(50)).toBe(
      'All 50 steps of this run are used. Raise limits.maxSteps to allow more.',
    )
  })
})
