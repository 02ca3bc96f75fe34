import { defaults, fails, isRefused, only, play, repeat, result, type Step } from '../facts.js'

const C: Step = { name: 'read_file', args: { path: 'x' } }
const D: Step = { name: 'read_file', args: { path: 'y' } }
const alone = only('repeatedCall')
const using = (changes: Partial<NonNullable<typeof defaults.repeatedCall>>, maxRepeatedToolSteps = 3) => ({
  ...alone,
  maxRepeatedToolSteps,
  repeatedCall: {
    haltAt: 'next',
    counts: 'unchanged',
    onRepeat: 'halt',
    onHalt: 'error',
    ...changes,
  } as const,
})

describe('the same call six times', () => {
  test('is nudged after the third and halts before the fourth runs', () => {
    const { executed, decisions } = play(repeat(6, C))
    expect(executed).toBe(3)
    expect(decisions).toEqual(['3: repeated_call nudge', '4 asked: repeated_call halt'])
  })

  test('has a nudge with a suggestion for the model, and a message with the key to change', () => {
    const { messages, evidence } = play(repeat(6, C), alone)
    expect(messages[0]).toBe(
      'You have called read_file with the same arguments 3 times and got the same result. Use that result or try something else.',
    )
    expect(messages[1]).toContain('guardrails.maxRepeatedToolSteps (now 3)')
    expect(messages[1]).toContain('polling')
    expect(evidence[1]).toBe('read_file({"path":"x"}), 3 times in a row')
  })

  test('halts right after the third with haltAt reached', () => {
    const { executed, decisions } = play(repeat(6, C), using({ haltAt: 'reached' }))
    expect(executed).toBe(3)
    expect(decisions).toEqual(['3: repeated_call halt'])
  })

  test.each([1, 2, 5])('runs %i times if that is maxRepeatedToolSteps', (max) => {
    expect(play(repeat(8, C), using({}, max)).executed).toBe(max)
  })

  test('passes when the guard is off', () => {
    expect(play(repeat(6, C), only()).executed).toBe(6)
  })
})

describe('the count restarts after', () => {
  test('a different batch', () => {
    expect(play([C, C, D, C, C, D, C, C], alone).decisions).toEqual([])
  })

  test('a changed result, because a repeated read with new data is progress', () => {
    expect(
      play(
        repeat(10, C).map((step, index) => ({ ...step, content: `${index}` })),
        alone,
      ).decisions,
    ).toEqual([])
    const late = play([...repeat(2, C), { ...C, content: 'new' }, { ...C, content: 'new' }, C], alone)
    expect(late.decisions).toEqual([])
  })

  test('a text turn', () => {
    expect(play([C, C, 'text', C, C, 'text', C, C], alone).decisions).toEqual([])
  })

  test('other arguments: six calls of one tool do not trip', () => {
    const calls = Array.from({ length: 6 }, (_, line) => ({ ...C, args: { line }, content: `${line}` }))
    expect(play(calls).decisions).toEqual([])
  })
})

describe('the same batch', () => {
  test('may have its keys in another order, but not another type', () => {
    const a = { args: { a: { x: 1, y: 2 }, b: 1 } }
    const b = { args: { b: 1, a: { y: 2, x: 1 } } }
    expect(play([a, b, a, b], alone).executed).toBe(3)
    expect(
      play([{ args: { a: 1 } }, { args: { a: '1' } }, { args: { a: 1 } }, { args: { a: '1' } }], alone)
        .decisions,
    ).toEqual([])
  })

  test('may have its calls in another order, but not another number', () => {
    expect(
      play(
        [
          [C, D],
          [D, C],
          [C, D],
          [D, C],
        ],
        alone,
      ).executed,
    ).toBe(3)
    expect(
      play(
        [
          [C, D],
          [C, D, D],
          [C, D],
          [C, D, D],
        ],
        alone,
      ).decisions,
    ).toEqual([])
  })

  test('is described as several calls if it has several', () => {
    const { messages } = play(repeat(4, [C, { ...D, name: 'grep' }]), alone)
    expect(messages[0]).toBe(
      'You have made the same 2 calls (read_file, grep) 3 times and got the same results. Use those results or try something else.',
    )
  })
})

describe('failures and refusals', () => {
  test('of batches are left to the failing guard: they neither count nor reset', () => {
    expect(play(repeat(6, { ...C, ...fails }), alone).decisions).toEqual([])
    expect(play([C, { ...C, ...fails }, C, { ...C, ...fails }, C, C], alone).executed).toBe(5)
  })

  test('count with every batch and any result if counts is all', () => {
    const mixed = [C, { ...C, ...fails }, { ...C, content: 'new' }, C]
    const { executed, messages } = play(mixed, using({ counts: 'all' }))
    expect(executed).toBe(3)
    expect(messages[0]).not.toContain('same result')
  })

  test('do not count if a batch was refused as a whole', () => {
    expect(
      play([C, C, { ...C, ...isRefused }, { ...C, ...isRefused }], using({ counts: 'all' })).decisions,
    ).toEqual([])
  })
})

describe('onRepeat block', () => {
  const block = using({ onRepeat: 'block' })

  test('refuses the fourth and halts at the fifth', () => {
    const { executed, decisions, messages } = play(repeat(6, C), block)
    expect(executed).toBe(3)
    expect(decisions).toEqual([
      '3: repeated_call nudge',
      '4 asked: repeated_call block',
      '5 asked: repeated_call halt',
    ])
    expect(messages[1]).toMatch(/^Not executed\..*the run stops\.$/)
  })

  test('lets the run continue if the model does something else', () => {
    expect(play([...repeat(4, C), D, 'text'], block).decisions).toEqual([
      '3: repeated_call nudge',
      '4 asked: repeated_call block',
    ])
  })

  test('remembers the refusal beyond the streak, so the second refusal of a call halts', () => {
    expect(play([...repeat(4, C), D, ...repeat(4, C)], block).decisions.at(-1)).toBe(
      '9 asked: repeated_call halt',
    )
    expect(play([...repeat(4, C), D, D, D, D], block).decisions.at(-1)).toBe('8 asked: repeated_call block')
  })

  test('feeds no failure counter', () => {
    const { state } = play(repeat(4, C), { ...defaults, repeatedCall: block.repeatedCall })
    expect(state.failing).toMatchObject({ identical: [], any: 0, transientAny: 0 })
  })

  test('is the same with haltAt reached', () => {
    expect(play(repeat(6, C), using({ onRepeat: 'block', haltAt: 'reached' })).decisions.at(-1)).toBe(
      '5 asked: repeated_call halt',
    )
  })
})

test('equal calls have equal result facts', () => {
  expect(result(C)).toEqual(result({ ...C }))
})
