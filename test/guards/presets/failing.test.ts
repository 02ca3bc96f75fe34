import type { FailingConfig } from '../../../guards/presets/failing.js'
import {
  defaults,
  fails,
  isDenied,
  isRefused,
  isUnknown,
  only,
  play,
  repeat,
  type Step,
  timesOut,
} from '../facts.js'

const C: Step = { name: 'fetch', args: { url: 'x' } }
const alone = only('failing')
const using = (changes: Partial<FailingConfig>) => ({
  ...alone,
  failing: defaults.failing && { ...defaults.failing, ...changes },
})
/** The same failure for different arguments. */
const various = (count: number, ending: Step): Step[] =>
  Array.from({ length: count }, (_, index) => ({ ...C, args: { index }, ...ending }))

describe('identical failures', () => {
  test('are nudged at the second and halt after the third', () => {
    const { decisions, messages, evidence } = play(repeat(5, { ...C, ...fails }))
    expect(decisions).toEqual(['2: repeated_failure nudge', '3: repeated_failure halt'])
    expect(messages[0]).toContain('fetch has failed twice with the same arguments.')
    expect(messages[1]).toContain('guardrails.failing.identical (now 3)')
    expect(evidence[1]).toBe('fetch({"url":"x"}) failed 3 times')
  })

  test('are distinguished by error class and by arguments', () => {
    expect(
      play(
        [C, C].flatMap((step) => [
          { ...step, ...fails },
          { ...step, ...timesOut },
        ]),
        alone,
      ).decisions,
    ).toEqual(['3: repeated_failure nudge'])
    expect(play(various(4, fails), alone).decisions).toEqual([])
  })

  test('count across other calls, as long as none succeeds', () => {
    const pair = various(2, fails)
    expect(play([...pair, ...pair, ...pair], alone).decisions.at(-1)).toBe('5: repeated_failure halt')
  })

  test('count once per batch, because the model reads a batch at once', () => {
    expect(play([repeat(5, { ...C, ...fails })], alone).decisions).toEqual([])
    expect(play([various(8, fails)], alone).decisions).toEqual([])
  })
})

describe('success', () => {
  test('resets: fail, fail, ok, fail, fail does not halt', () => {
    const failed = { ...C, ...fails }
    expect(play([failed, failed, C, failed, failed], alone).decisions).not.toContain(
      '5: repeated_failure halt',
    )
    expect(play([failed, failed, { name: 'read' }, failed, failed], alone).decisions).not.toContain(
      '5: repeated_failure halt',
    )
  })

  test('does not excuse a failing call next to it', () => {
    const reads = Array.from({ length: 3 }, (_, page): Step[] => [{ args: { page } }, { ...C, ...fails }])
    expect(play(reads, alone).decisions.at(-1)).toBe('3: repeated_failure halt')
  })
})

describe('failures of any calls', () => {
  test('are nudged at the fifth and halt after the sixth', () => {
    const { decisions, messages } = play(various(8, fails))
    expect(decisions).toEqual(['5: repeated_failure nudge', '6: repeated_failure halt'])
    expect(messages[1]).toContain('guardrails.failing.any (now 6)')
  })

  test('include denials, but neither unknown tools nor transient failures', () => {
    expect(play([...various(5, fails), { ...C, ...isDenied }], alone).decisions.at(-1)).toBe(
      '6: repeated_failure halt',
    )
    expect(play([...various(4, fails), ...various(4, isUnknown)], alone).decisions).toEqual([])
    expect(play([...various(4, fails), ...various(4, timesOut)], alone).decisions).toEqual([])
  })
})

describe('transient failures', () => {
  const late = { ...C, ...timesOut }

  test('continue after seven and a success, and halt at the eighth', () => {
    expect(play([...repeat(7, late), C], alone).decisions).toEqual(['7: repeated_failure nudge'])
    expect(play(repeat(9, late), alone).decisions).toEqual([
      '7: repeated_failure nudge',
      '8: repeated_failure halt',
    ])
  })

  test('of any calls halt after twelve', () => {
    expect(play(various(14, timesOut), alone).decisions).toEqual([
      '11: repeated_failure nudge',
      '12: repeated_failure halt',
    ])
  })

  test('of polls do not count, but other failures of polls do', () => {
    expect(play(repeat(20, { ...late, polling: true }), alone).decisions).toEqual([])
    expect(play(repeat(3, { ...C, ...fails, polling: true }), alone).decisions.at(-1)).toBe(
      '3: repeated_failure halt',
    )
    const beside: Step[] = [
      { ...late, polling: true },
      { ...C, args: 2, ...timesOut },
    ]
    expect(play(repeat(8, beside), alone).decisions.at(-1)).toBe('8: repeated_failure halt')
  })
})

describe('a policy denial', () => {
  test('is nudged immediately and halts at the second', () => {
    const { decisions, messages } = play(repeat(3, { ...C, ...isDenied }))
    expect(decisions).toEqual(['1: policy_denied nudge', '2: policy_denied halt'])
    expect(messages[1]).toContain('guardrails.failing.policyDenied (now 2)')
  })

  test('of other arguments does not halt', () => {
    expect(play(various(2, isDenied), alone).decisions).toEqual([
      '1: policy_denied nudge',
      '2: policy_denied nudge',
    ])
  })
})

test('six distinct unknown tools do not halt, but one of them three times does', () => {
  const unknown = Array.from({ length: 6 }, (_, index) => ({ name: `tool${index}`, ...isUnknown }))
  expect(play(unknown).decisions).toEqual([])
  expect(play(repeat(3, { name: 'nope', ...isUnknown })).decisions.at(-1)).toBe('3: repeated_failure halt')
})

test('refusals feed no failure counter', () => {
  expect(play(repeat(20, { ...C, ...isRefused, errorKind: 'failed' })).decisions).toEqual([])
})

describe('onRepeat block', () => {
  const block = using({ onRepeat: 'block' })

  test('refuses the call after the last allowed failure and halts at its second refusal', () => {
    const { executed, decisions } = play(repeat(6, { ...C, ...fails }), block)
    expect(executed).toBe(3)
    expect(decisions).toEqual([
      '2: repeated_failure nudge',
      '4 asked: repeated_failure block',
      '5 asked: repeated_failure halt',
    ])
  })

  test('refuses only that call and lets the others of its batch run', () => {
    const good: Step = { name: 'read' }
    const { executed, decisions, messages } = play(
      [...repeat(3, { ...C, ...fails }), [good, { ...C, ...fails }]],
      block,
    )
    expect(executed).toBe(4)
    expect(decisions.at(-1)).toBe('4 asked: repeated_failure block')
    expect(messages.at(-1)).toContain('fetch has failed 3 times')
  })

  test('remembers a refused call even if another one of its batch succeeds', () => {
    const batch: Step[] = [{ name: 'read' }, { ...C, ...fails }]
    expect(play(repeat(6, batch), block).decisions.at(-1)).toBe('5 asked: repeated_failure halt')
  })

  test('cannot refuse a streak of different calls, which halts instead', () => {
    expect(play(various(8, fails), block).decisions.at(-1)).toBe('6: repeated_failure halt')
  })

  test('names a denial as such', () => {
    expect(play(repeat(5, { ...C, ...isDenied }), block).decisions).toEqual([
      '1: policy_denied nudge',
      '3 asked: policy_denied block',
      '4 asked: policy_denied halt',
    ])
  })
})
