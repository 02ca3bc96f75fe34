import { defaults, play, repeat, type Step } from './facts.js'

const poll: Step = { name: 'status', args: { job: 1 }, content: 'running', polling: true }

test('ten polls pass every guard', () => {
  const { executed, decisions } = play(repeat(10, poll))
  expect(executed).toBe(10)
  expect(decisions).toEqual([])
})

test('a poll in a batch with another call counts', () => {
  expect(play(repeat(10, [poll, { name: 'read' }])).executed).toBe(3)
})

test('two polls in one batch are a polling batch', () => {
  expect(play(repeat(10, [poll, { ...poll, args: { job: 2 } }])).decisions).toEqual([])
})

test('with counts all polls are exempt, too', () => {
  const all = { haltAt: 'next', counts: 'all', onRepeat: 'halt', onHalt: 'error' } as const
  expect(play(repeat(10, poll), { ...defaults, repeatedCall: all }).decisions).toEqual([])
})
