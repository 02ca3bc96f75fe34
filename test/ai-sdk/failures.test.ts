import type { Turn } from '../../src/rehearsal/index.js'
import { until } from '../support/play.js'
import { packages, playedBy, stageOf } from './support.js'

/** Packages with a separate wire format. */
const wireFormats = Object.entries(packages).filter(([name]) => /v[34]$/.test(name))
const answer: Turn = { text: 'Here.' }

describe.each(wireFormats)('%s', (name, make) => {
  it.each([true, false])(
    'a rate limit is waited out as the provider requests (stream: %s)',
    async (stream) => {
      const { result, of } = await playedBy(make, [{ status: 429, retryAfter: 7 }, answer], { stream })
      expect(result).toMatchObject({ state: 'COMPLETED', output: 'Here.' })
      expect(of('retry')).toMatchObject([{ delayMs: 7_000, message: expect.stringContaining('Status 429') }])
    },
  )

  it.each([503, 529])('an outage of status %i is retried, only by the loop', async (status) => {
    const { result, of } = await playedBy(make, [{ status }, { status }, answer])
    expect(result.state).toBe('COMPLETED')
    expect(of('retry')).toHaveLength(2)
  })

  it('a rejected key ends the run with a remedy', async () => {
    const error = { message: 'Bad key: sk-ant-api03-0123456789abcdefghij0123456789' }
    const { result } = await playedBy(make, [{ status: 401, error }])
    expect(result).toMatchObject({ state: 'ERROR', reason: 'provider_error', error: { recoverable: false } })
    expect(result.error?.message).toContain('Check the API key of the provider package')
    expect(result.error?.message).not.toMatch(/OPENAI_API_KEY|0123456789/)
  })

  it('a request that is too long is recognized', async () => {
    const error = { message: 'prompt is too long: 210000 tokens > 200000 maximum' }
    const { result } = await playedBy(make, [{ status: 400, error }])
    expect(result).toMatchObject({ state: 'ERROR', reason: 'context_overflow' })
  })

  it('a broken stream is retried, and its text is removed', async () => {
    const cut: Turn = { text: 'One two three four five', chunkSize: 4, cutAfter: 2 }
    const { result, of } = await playedBy(make, [cut, answer])
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'Here.' })
    expect(of('retry')).toMatchObject([{ code: 'connection' }])
    expect(of('stream_chunk').filter(({ reset }) => reset)).toHaveLength(1)
  })

  it('a stream without an end is not an answer', async () => {
    const { result, of } = await playedBy(make, [{ text: 'One two', endWithout: 'both' }, answer])
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'Here.' })
    expect(of('retry')).toMatchObject([{ code: 'incomplete_response' }])
  })

  it('a transient error in a stream is retried', async () => {
    const type = name.startsWith('anthropic') ? 'overloaded_error' : 'server_error'
    const errorInStream = { after: 1, error: { type, message: 'Overloaded' } }
    const { result, of } = await playedBy(make, [
      { text: 'One two three four', chunkSize: 4, errorInStream },
      answer,
    ])
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'Here.' })
    expect(of('retry')).toHaveLength(1)
  })

  it('a stream that is not valid JSON is retried', async () => {
    const raw = { headers: { 'content-type': 'text/event-stream' }, body: 'data: {"broken\n\n' }
    const { result, of } = await playedBy(make, [{ raw }, answer])
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'Here.' })
    expect(of('retry')).toMatchObject([{ code: 'malformed_response' }])
  })

  it.each([true, false])(
    'a cancelled request ends immediately, and so does its socket (stream: %s)',
    async (stream) => {
      const stage = await stageOf(make, [{ text: 'One two three four', chunkSize: 4, hang: 2 }], { stream })
      const play = stage.run()
      if (stream) await play.event('stream_chunk', ({ text }) => text === 'two ')
      else await stage.arrival()
      play.run.cancel()
      const result = await play.end(1)
      expect(result).toMatchObject({ state: 'CANCELLED', output: stream ? 'One two ' : '' })
      await until(() => stage.requests[0]?.aborted === true)
    },
  )

  it('a truncated call is never executed', async () => {
    const calls = [{ name: 'add', arguments: '{"a": 1, "b"' }]
    const { result } = await playedBy(make, [{ text: 'So.', finishReason: 'length' }, answer])
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'So.Here.' })
    if (name.startsWith('google')) return
    const { result: again } = await playedBy(make, [{ toolCalls: calls, finishReason: 'length' }, answer])
    expect(again.messages.filter(({ role }) => role === 'tool')).toMatchObject([
      { content: expect.stringContaining('cut off') },
    ])
  })
})
