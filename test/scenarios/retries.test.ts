import { type Play, played, stage, tick } from '../support/play.js'
import { text, times } from '../support/tools.js'
import type { Turn } from '../../src/rehearsal/index.js'

const overloaded: Turn = { status: 503 }
const limited: Turn = { status: 429 }

/** A run that skips every back-off on the simulated clock. */
async function retried(turns: Turn[], options: Parameters<typeof stage>[1] = {}) {
  const theatre = await stage(turns, options)
  const play = theatre.run().skipBackOff()
  const result = await play.end(turns.length)
  return { result, play, stage: theatre, at: theatre.requests.length }
}

function shown(play: Play): string {
  let all = ''
  for (const { text: piece, reset } of play.of('stream_chunk')) all = (reset ? '' : all) + piece
  return all
}

describe('a recoverable failure', () => {
  it('is retried with exponential back-off and jitter, and costs no step', async () => {
    const { result, play } = await retried([overloaded, overloaded, text('At last.')])
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'At last.', steps: 1 })
    const [first, second] = play.of('retry')
    expect(play.of('retry')).toMatchObject([
      { attempt: 2, code: 'server_error' },
      { attempt: 3, code: 'server_error' },
    ])
    expect(first?.delayMs).toBeGreaterThanOrEqual(500)
    expect(first?.delayMs).toBeLessThanOrEqual(1500)
    expect(second?.delayMs).toBeGreaterThanOrEqual(1000)
    expect(second?.delayMs).toBeLessThanOrEqual(3000)
  })

  it('ends the run after retry.maxAttempts attempts', async () => {
    const { result } = await retried(times(2, overloaded), { retry: { maxAttempts: 2 } })
    expect(result).toMatchObject({ state: 'ERROR', reason: 'provider_error', steps: 0 })
    expect(result.error).toMatchObject({ code: 'server_error', recoverable: true })
    expect(result.error?.message).toMatch(/503/)
  })

  it('resets the attempts for each step', async () => {
    const call: Turn = { toolCalls: [{ name: 'nothing' }] }
    const { result } = await retried([overloaded, overloaded, call, overloaded, overloaded, text('Done.')])
    expect(result).toMatchObject({ state: 'COMPLETED', steps: 2 })
  })

  it.each([
    ['Retry-After', { retryAfter: 7 }, 7_000],
    ['Retry-After-ms', { retryAfterMs: 250 }, 250],
    ['Retry-After-ms before Retry-After', { retryAfter: 7, retryAfterMs: 250 }, 250],
  ])('is retried exactly if %s allows it', async (_name, header, delayMs) => {
    const theatre = await stage([{ ...limited, ...header }, text('Thanks.')])
    const play = theatre.run()
    expect(await play.event('retry')).toMatchObject({ delayMs, attempt: 2 })
    await tick()
    theatre.clock.increment(delayMs - 1)
    await tick()
    expect(theatre.requests).toHaveLength(1)
    theatre.clock.increment(1)
    expect((await play.end(2)).output).toBe('Thanks.')
  })

  it('is not retried if Retry-After is longer than retry.maxRetryAfterMs', async () => {
    const { result } = await played([{ ...limited, retryAfter: 3_600 }])
    expect(result).toMatchObject({
      state: 'ERROR',
      error: { code: 'rate_limit_exceeded', recoverable: true },
    })
  })

  it('counts rate limits separately from other failures', async () => {
    const many = await retried([...times(5, limited), text('Finally.')])
    expect(many.result).toMatchObject({ state: 'COMPLETED', output: 'Finally.' })
    const mixed = await retried([limited, overloaded, limited, overloaded, limited, text('Finally.')])
    expect(mixed.result.state).toBe('COMPLETED')
    const tooMany = await retried(times(6, limited))
    expect(tooMany.result).toMatchObject({ state: 'ERROR', error: { code: 'rate_limit_exceeded' } })
  })

  it('can be a connection that breaks during an answer: the text restarts, and is shown once', async () => {
    const { result, play } = await retried([text('Once upon a time, there', { cutAfter: 1 }), text('Once.')])
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'Once.' })
    expect(play.of('stream_chunk').some((chunk) => chunk.text === 'Once upon a time')).toBe(true)
    expect(shown(play)).toBe('Once.')
    expect(result.messages).toHaveLength(2)
  })

  it('can be an unstreamed response that breaks off', async () => {
    const { result } = await retried([text('Once upon', { cutAfter: 0 }), text('Once.')], { stream: false })
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'Once.' })
  })

  it('can be an error object in the middle of the stream', async () => {
    const error = { message: 'Overloaded.', type: 'overloaded_error', code: 'overloaded' }
    const { result, play } = await retried([
      text('Once upon a time, there', { errorInStream: { after: 1, error } }),
      text('Once.'),
    ])
    expect(play.of('retry')[0]).toMatchObject({ code: 'overloaded' })
    expect(result.output).toBe('Once.')
  })

  it('can be a provider that is silent for streamIdleMs, before or during its answer', async () => {
    for (const silent of [{ hang: true as const }, text('Once upon a time, there', { hang: 1 })]) {
      const theatre = await stage([silent, text('Once.')], { streamIdleMs: 5_000 })
      const play = theatre.run().skipBackOff()
      await theatre.arrival()
      if (silent.hang === 1) await play.event('stream_chunk')
      theatre.clock.increment(4_999)
      await tick()
      expect(play.of('retry')).toEqual([])
      theatre.clock.increment(5_000)
      expect(await play.event('retry')).toMatchObject({ code: 'idle_timeout' })
      expect((await play.end(2)).output).toBe('Once.')
    }
  })
})

describe('a stream that closes without an end marker', () => {
  const cut = text('Half an answer', { endWithout: 'both' })

  it('is retried, then ends in ERROR/incomplete_response with the text stored and marked', async () => {
    const { result } = await retried(times(3, cut))
    expect(result).toMatchObject({ state: 'ERROR', reason: 'incomplete_response', output: 'Half an answer' })
    expect(result.messages.at(-1)).toMatchObject({ content: 'Half an answer', data: { partial: true } })
  })

  it('completes if the next attempt does', async () => {
    expect((await retried([cut, text('A whole answer.')])).result.output).toBe('A whole answer.')
  })

  it('is accepted with completion.onMissingEnd accept, and a warning', async () => {
    const { result, of } = await played([cut], { completion: { onMissingEnd: 'accept' } })
    expect(result).toMatchObject({ state: 'COMPLETED', reason: 'end_turn', output: 'Half an answer' })
    expect(of('warning')).toMatchObject([{ code: 'missing_end' }, { code: 'missing_usage' }])
  })

  it.each(['finish', 'done'] as const)('is complete if only its %s is missing', async (endWithout) => {
    const { result } = await played([text('All of it.', { endWithout })])
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'All of it.' })
  })
})
