import { defaults, fails, isRefused, only, play, repeat, type Step } from '../facts.js'

const A: Step = { name: 'read', args: { path: 'a' }, content: 'a' }
const B: Step = { name: 'grep', args: { word: 'b' }, content: 'b' }
const C: Step = { name: 'list', content: 'c' }
const D: Step = { name: 'stat', content: 'd' }
const W: Step = { name: 'write', readOnly: false, content: 'written' }
const alone = only('cycle')

describe('repeating cycles of batches', () => {
  test('A, B, A, B, A, B cause a nudge after two periods and a halt after three', () => {
    const { executed, decisions, messages } = play(repeat(5, A, B))
    expect(executed).toBe(6)
    expect(decisions).toEqual(['4: cycle nudge', '6: cycle halt'])
    expect(messages[0]).toContain('You are going around in circles (read → grep → read)')
    expect(messages[1]).toContain('guardrails.cycle.haltAt (now 3)')
  })

  test.each([
    [3, [A, B, C]],
    [3, [A, A, B]],
    [4, [A, B, C, D]],
    [4, [A, B, A, C]],
  ])('are detected with a period of %i', (period, round) => {
    const { decisions } = play(repeat(4, ...round), alone)
    expect(decisions).toEqual([`${period * 2}: cycle nudge`, `${period * 3}: cycle halt`])
  })

  test('are not detected with a period of five, unless maxPeriod allows it', () => {
    const round = [A, B, C, D, { name: 'tree' }]
    expect(play(repeat(5, ...round), alone).decisions).toEqual([])
    const wide = { ...alone, cycle: { maxPeriod: 5, nudgeAt: 2, haltAt: 3, onHalt: 'error' } as const }
    expect(play(repeat(5, ...round), wide).decisions).toEqual(['10: cycle nudge', '15: cycle halt'])
  })

  test('are not one repeated batch', () => {
    expect(play(repeat(20, A), alone).decisions).toEqual([])
  })

  test('may contain failures with stable results', () => {
    expect(play(repeat(3, { ...A, ...fails }, B), alone).decisions.at(-1)).toBe('6: cycle halt')
  })

  test('may contain tools that change things', () => {
    expect(play(repeat(3, A, W)).decisions).toEqual(['4: cycle nudge', '6: cycle halt'])
  })

  test('may have thresholds far beyond the stored window', () => {
    const late = { ...alone, cycle: { maxPeriod: 4, nudgeAt: 30, haltAt: 50, onHalt: 'error' } as const }
    expect(play(repeat(60, A, B), late).decisions.at(-1)).toBe('100: cycle halt')
  })
})

describe('a cycle is broken by', () => {
  test('a changed result in between', () => {
    const changed = { ...B, content: 'news' }
    expect(play([A, B, A, changed, A, B], alone).decisions).toEqual([])
    expect(play([A, B, A, B, A, changed, A, B], alone).decisions).toEqual(['4: cycle nudge'])
  })

  test('results that change every time', () => {
    const rounds = repeat(5, A, B).map((step, index) => ({ ...step, content: `${index}` }))
    expect(play(rounds, alone).decisions).toEqual([])
  })

  test('a successful call outside of it that may change things', () => {
    expect(play([A, B, A, B, W, A, B], alone).decisions).toEqual(['4: cycle nudge'])
    expect(play([A, B, A, B, [W, C], A, B], alone).decisions).toEqual(['4: cycle nudge'])
  })

  test('a polling batch', () => {
    expect(play([A, B, A, B, { ...C, polling: true }, A, B], alone).decisions).toEqual(['4: cycle nudge'])
  })
})

describe('a cycle is not broken', () => {
  test.each<[string, Step]>([
    ['a call outside of it that only reads', C],
    ['a call outside of it that fails', { ...W, ...fails }],
    ['a call that was refused', { ...W, ...isRefused }],
  ])('%s', (_, stranger) => {
    expect(play([A, B, A, B, stranger, A, B], alone).decisions).toEqual(['4: cycle nudge', '7: cycle halt'])
  })

  test('but a long excursion breaks it', () => {
    const excursion = Array.from({ length: 5 }, (_, index) => ({ ...C, args: { index } }))
    expect(play([A, B, A, B, ...excursion, A, B], alone).decisions).toEqual(['4: cycle nudge'])
  })
})

test('polls are exempt if the whole batch polls', () => {
  const [pollA, pollB]: [Step, Step] = [
    { ...A, polling: true },
    { ...B, polling: true },
  ]
  expect(play(repeat(10, pollA, pollB)).decisions).toEqual([])
  expect(play(repeat<Step | Step[]>(3, [pollA, C], B), alone).decisions.at(-1)).toBe('6: cycle halt')
})

test('the guard can be off', () => {
  expect(play(repeat(6, A, B), { ...defaults, cycle: null }).decisions).toEqual([])
})
