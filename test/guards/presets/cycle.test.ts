import { defaults, fails, isRefused, only, play, repeat, type Step } from '../facts.js'

const A: Step = { name: 'read', args: { path: 'a' }, content: 'a' }
const B: Step = { name: 'grep', args: { word: 'b' }, content: 'b' }
const C: Step = { name: 'list', content: 'c' }
const D: Step = { name: 'stat', content: 'd' }
const W: Step = { name: 'write', readOnly: false, content: 'written' }
const alone = only('cycle')

describe('batches that go round in circles', () => {
  test('A, B, A, B, A, B is nudged after two periods and halts after three', () => {
    const { executed, said, messages } = play(repeat(5, A, B))
    expect(executed).toBe(6)
    expect(said).toEqual(['4: cycle nudge', '6: cycle halt'])
    expect(messages[0]).toContain('You are going around in circles (read → grep → read)')
    expect(messages[1]).toContain('guardrails.cycle.haltAt (now 3)')
  })

  test.each([
    [3, [A, B, C]],
    [3, [A, A, B]],
    [4, [A, B, C, D]],
    [4, [A, B, A, C]],
  ])('a period of %i is seen', (period, round) => {
    const { said } = play(repeat(4, ...round), alone)
    expect(said).toEqual([`${period * 2}: cycle nudge`, `${period * 3}: cycle halt`])
  })

  test('a period of five is not, until maxPeriod says so', () => {
    const round = [A, B, C, D, { name: 'tree' }]
    expect(play(repeat(5, ...round), alone).said).toEqual([])
    const wide = { ...alone, cycle: { maxPeriod: 5, nudgeAt: 2, haltAt: 3, onHalt: 'error' } as const }
    expect(play(repeat(5, ...round), wide).said).toEqual(['10: cycle nudge', '15: cycle halt'])
  })

  test('one batch over and over is no cycle', () => {
    expect(play(repeat(20, A), alone).said).toEqual([])
  })

  test('failures with stable results belong to it', () => {
    expect(play(repeat(3, { ...A, ...fails }, B), alone).said.at(-1)).toBe('6: cycle halt')
  })

  test('tools that change things belong to it when they come round', () => {
    expect(play(repeat(3, A, W)).said).toEqual(['4: cycle nudge', '6: cycle halt'])
  })

  test('thresholds far beyond the stored window work', () => {
    const late = { ...alone, cycle: { maxPeriod: 4, nudgeAt: 30, haltAt: 50, onHalt: 'error' } as const }
    expect(play(repeat(60, A, B), late).said.at(-1)).toBe('100: cycle halt')
  })
})

describe('what clears it', () => {
  test('a changed result in between', () => {
    const changed = { ...B, content: 'news' }
    expect(play([A, B, A, changed, A, B], alone).said).toEqual([])
    expect(play([A, B, A, B, A, changed, A, B], alone).said).toEqual(['4: cycle nudge'])
  })

  test('results that change every time', () => {
    const rounds = repeat(5, A, B).map((step, index) => ({ ...step, content: `${index}` }))
    expect(play(rounds, alone).said).toEqual([])
  })

  test('a successful call outside of it that may change things', () => {
    expect(play([A, B, A, B, W, A, B], alone).said).toEqual(['4: cycle nudge'])
    expect(play([A, B, A, B, [W, C], A, B], alone).said).toEqual(['4: cycle nudge'])
  })

  test('a polling batch', () => {
    expect(play([A, B, A, B, { ...C, polling: true }, A, B], alone).said).toEqual(['4: cycle nudge'])
  })
})

describe('what does not clear it', () => {
  test.each<[string, Step]>([
    ['a call outside of it that only reads', C],
    ['a call outside of it that fails', { ...W, ...fails }],
    ['a call that was refused', { ...W, ...isRefused }],
  ])('%s', (_, stranger) => {
    expect(play([A, B, A, B, stranger, A, B], alone).said).toEqual(['4: cycle nudge', '7: cycle halt'])
  })

  test('but a long excursion does', () => {
    const excursion = Array.from({ length: 5 }, (_, index) => ({ ...C, args: { index } }))
    expect(play([A, B, A, B, ...excursion, A, B], alone).said).toEqual(['4: cycle nudge'])
  })
})

test('polls are exempt when the whole batch polls', () => {
  const [pollA, pollB]: [Step, Step] = [
    { ...A, polling: true },
    { ...B, polling: true },
  ]
  expect(play(repeat(10, pollA, pollB)).said).toEqual([])
  expect(play(repeat<Step | Step[]>(3, [pollA, C], B), alone).said.at(-1)).toBe('6: cycle halt')
})

test('the guard can be off', () => {
  expect(play(repeat(6, A, B), { ...defaults, cycle: null }).said).toEqual([])
})
