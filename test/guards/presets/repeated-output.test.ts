import { defaults, fails, isRefused, only, play, type Step } from '../facts.js'

const alone = only('repeatedOutput')
const strict = { ...alone, repeatedOutput: { rounds: 4, strict: true, onHalt: 'error' } as const }

/** Different searches with the same result. */
const searches = (count: number, more: Step = {}): Step[] =>
  Array.from({ length: count }, (_, index) => ({
    name: 'search',
    args: { index },
    content: 'nothing found',
    ...more,
  }))

describe('rounds with the same results', () => {
  test('halt right after the fourth, with any arguments', () => {
    const { executed, decisions, messages } = play(searches(6))
    expect(executed).toBe(4)
    expect(decisions).toEqual(['4: repeated_output halt'])
    expect(messages[0]).toContain('guardrails.repeatedOutput.rounds (now 4)')
  })

  test('cause a nudge if a tool may change things, again at every fourth', () => {
    const { executed, decisions } = play(searches(9, { readOnly: false }), alone)
    expect(executed).toBe(9)
    expect(decisions).toEqual(['4: repeated_output nudge', '8: repeated_output nudge'])
  })

  test('always halt with strict', () => {
    expect(play(searches(6, { readOnly: false }), strict).decisions).toEqual(['4: repeated_output halt'])
  })

  test('may have different sizes: three empty searches after one make no progress', () => {
    expect(play([searches(1), searches(2), searches(1), searches(2)], alone).decisions).toEqual([
      '4: repeated_output halt',
    ])
  })

  test('may come from other tools', () => {
    const names = ['search', 'find', 'grep', 'list']
    const batches = searches(4).map((step, index) => ({ ...step, name: names[index] ?? '' }))
    expect(play(batches, alone).decisions).toEqual(['4: repeated_output halt'])
  })
})

describe('the streak ends with', () => {
  const [first, last] = [searches(3), searches(3)]

  test.each<[string, Step | 'text']>([
    ['another result', { content: 'found it' }],
    ['an error', fails],
    ['a text turn', 'text'],
    ['a polling batch', { name: 'search', content: 'nothing found', polling: true }],
  ])('%s', (_, between) => {
    expect(play([...first, between, ...last], alone).decisions).toEqual([])
  })

  test('but not with a refused call', () => {
    expect(play([...first, isRefused, ...last], alone).decisions).toEqual(['5: repeated_output halt'])
  })
})

test('errors never feed the streak, even if all are the same', () => {
  expect(play(searches(10, fails), alone).decisions).toEqual([])
})

test('polls never feed the streak, unless they are next to another call', () => {
  expect(play(searches(10, { polling: true })).decisions).toEqual([])
  const mixed = searches(4).map((step): Step[] => [step, { ...step, name: 'wait', polling: true }])
  expect(play(mixed, alone).decisions).toEqual(['4: repeated_output halt'])
})

test('the fourth identical call halts here if the repeated-call guard is off', () => {
  expect(play([{}, {}, {}, {}, {}], { ...defaults, repeatedCall: null }).decisions).toEqual([
    '4: repeated_output halt',
  ])
})
