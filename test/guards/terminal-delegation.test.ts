import { isDenied, play, type Step } from './facts.js'

const child = (state: string, code: string | null, message = ''): Step => ({
  name: 'research',
  ok: false,
  errorKind: 'failed',
  child: { state, code, message },
})

test.each(['provider_quota', 'provider_config'])(
  'a sub-agent that ended in ERROR with %s halts immediately',
  (code) => {
    const { decisions, messages, evidence } = play([
      [{ name: 'read' }, child('ERROR', code, 'You exceeded your quota.')],
    ])
    expect(decisions).toEqual(['1: terminal_delegation halt'])
    expect(messages[0]).toContain('The sub-agent research cannot continue')
    expect(evidence[0]).toBe(`research ended in ERROR with ${code}: You exceeded your quota.`)
  },
)

test.each([
  ['ERROR', 'provider_error'],
  ['ERROR', null],
  ['ERROR', 'toString'],
  ['MAX_STEPS', 'provider_quota'],
  ['BUDGET_EXCEEDED', 'token_budget'],
  ['TIMED_OUT', 'timeout'],
])('a sub-agent in %s with %s is unfinished, not terminal', (state, code) => {
  expect(play([child(state, code)]).decisions).toEqual([])
})

test('the text of a result does not count', () => {
  expect(
    play([{ ...child('ERROR', 'provider_error', 'insufficient_quota, provider_quota'), content: 'quota' }])
      .decisions,
  ).toEqual([])
})

test('a terminal sub-agent takes precedence over other findings in the same batch', () => {
  const denied: Step = { name: 'write', ...isDenied }
  expect(play([denied, [denied, child('ERROR', 'provider_quota')]]).decisions).toEqual([
    '1: policy_denied nudge',
    '2: terminal_delegation halt',
    '2: policy_denied halt',
  ])
})
