import { ConfigError, createSession, UsageError } from '../../src/index.js'
import { findHistoryProblem } from '../support/history.js'
import { stage } from '../support/play.js'
import { call, text, tool } from '../support/tools.js'

describe('a session', () => {
  it('carries only the conversation and its totals from run to run', async () => {
    const usage = { input: 100, output: 10 }
    const theatre = await stage(
      [call('look', {}, { usage }), text('A cat.', { usage }), text('Black.', { usage })],
      { tools: [tool('look')] },
    )
    const session = createSession('pets')
    const first = await theatre.run('What is it?', { session }).end(2)
    const second = await theatre.run('What colour?', { session }).end(3)
    expect(first.usage).toMatchObject({ inputTokens: 200, outputTokens: 20, totalTokens: 220 })
    expect(second.usage).toMatchObject({ inputTokens: 100, outputTokens: 10, totalTokens: 110 })
    expect(session.usage).toMatchObject({ inputTokens: 300, outputTokens: 30, totalTokens: 330 })
    expect(theatre.wire(2).map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'tool',
      'assistant',
      'user',
    ])
    expect(session.messages).toEqual(second.messages)
    expect(findHistoryProblem(session.messages)).toBeNull()
    expect(second.steps).toBe(1)
  })

  it('is found again by its id', async () => {
    const theatre = await stage([text('Noted.'), text('Seven.')])
    await theatre.run('Remember seven.', { session: 'numbers' }).end(1)
    await theatre.run('Which number?', { session: 'numbers' }).end(2)
    expect(theatre.wire(1).map(({ content }) => content)).toEqual([
      'Remember seven.',
      'Noted.',
      'Which number?',
    ])
  })

  it('refuses a second run while one is active, and accepts it afterwards', async () => {
    const theatre = await stage([{ hang: true }, text('Now.')])
    const session = createSession()
    const first = theatre.run('One.', { session })
    await theatre.arrival()
    await expect(theatre.agent.run('Two.', { session }).started).rejects.toThrow(UsageError)
    await expect(theatre.agent.run('Two.', { session }).result).rejects.toThrow(/busy.*cancel/)
    first.run.cancel()
    await first.end(1)
    expect((await theatre.run('Two.', { session }).end(2)).output).toBe('Now.')
  })

  it('stays usable after a run that was cancelled during its answer', async () => {
    const theatre = await stage([text('One two three four', { chunkSize: 4, hang: 2 }), text('Five.')])
    const session = createSession()
    const first = theatre.run('Count.', { session })
    await first.event('stream_chunk', (chunk) => chunk.text === 'two ' || chunk.text === ' two')
    first.run.cancel()
    await first.end(1)
    await theatre.run('Go on.', { session }).end(2)
    expect(theatre.wire(1).map(({ content }) => content)).toEqual(['Count.', 'One two ', 'Go on.'])
  })

  it('is unlocked after a run was refused before its start', async () => {
    const theatre = await stage([text('Fine.')])
    const session = createSession()
    const run = theatre.agent.run('Hi.', { session, limits: { costLimit: 1 } })
    await expect(run.result).rejects.toThrow(ConfigError)
    expect((await theatre.run('Hi.', { session }).end(1)).output).toBe('Fine.')
  })

  it.each([
    ['an empty text', '  '],
    ['no messages', []],
    ['an invalid message', [null]],
    ['an assistant message', [{ role: 'assistant', content: 'I said so.' }]],
    ['a part of no known type', [{ content: [{ type: 'video' }] }]],
    ['a number', 7],
  ])('is unchanged by %s as input, which is refused', async (_what, input) => {
    const theatre = await stage([text('Fine.')])
    const session = createSession()
    expect(() => theatre.agent.run(input as never, { session })).toThrow(UsageError)
    expect((await theatre.run('Hi.', { session }).end(1)).output).toBe('Fine.')
  })
})
