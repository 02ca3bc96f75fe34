import { jest } from '@jest/globals'
import { APIError, RateLimitError } from 'openai'
import { SimulatedClock } from 'xstate'
import { ask, body, clientOf, complete, dataOf, playing, post, receive, start, stream } from './support.js'

const abc = { text: 'abcdef', chunkSize: 2 }

/** The number of received deltas with content. */
function deltasIn(text: string): number {
  return dataOf(text).filter((data) => /"content":"[^"]/.test(data)).length
}

describe('an error', () => {
  test('contains status, error object and Retry-After in seconds and milliseconds', async () => {
    const error = { message: 'Slow down.', type: 'tokens', code: 'rate_limit_exceeded' }
    const rehearsal = await playing({ status: 429, error, retryAfter: 2, retryAfterMs: 1500 })
    const failure: unknown = await complete(rehearsal).catch((caught: unknown) => caught)
    expect(failure).toBeInstanceOf(RateLimitError)
    expect(failure).toMatchObject({ status: 429, type: 'tokens', code: 'rate_limit_exceeded' })
    const { headers } = failure as APIError<429, Headers>
    expect([headers.get('retry-after'), headers.get('retry-after-ms')]).toEqual(['2', '1500'])
  })

  test.each([
    [400, 'invalid_request_error', null],
    [401, 'invalid_request_error', 'invalid_api_key'],
    [429, 'requests', 'rate_limit_exceeded'],
    [503, 'server_error', null],
  ])(
    'of status %i has the default object if the turn sets none, streaming or not',
    async (status, type, code) => {
      const rehearsal = await playing({ status }, { status })
      for (const stream of [true, false]) {
        const response = await post(rehearsal, body({ stream }))
        expect(response.status).toBe(status)
        expect(await response.json()).toMatchObject({ error: { type, code, message: expect.any(String) } })
      }
    },
  )

  test('has status 500 if the turn sets none', async () => {
    const response = await post(await playing({ error: { message: 'Broken.' } }))
    expect(response.status).toBe(500)
    expect(await response.json()).toMatchObject({ error: { message: 'Broken.', type: 'server_error' } })
  })

  test('is retried by the real client, which then gets the next turn', async () => {
    const rehearsal = await playing({ status: 429, retryAfterMs: 1 }, { text: 'Hi' })
    const client = clientOf(rehearsal).withOptions({ maxRetries: 1 })
    const completion = await client.chat.completions.create({ model: 'gpt', messages: ask })
    expect(completion.choices[0]?.message.content).toBe('Hi')
    expect(rehearsal.requests.map(({ turn }) => turn)).toEqual([0, 1])
  })

  test('can occur in the middle of a stream, which then ends', async () => {
    const errorInStream = { after: 1, error: { message: 'Overloaded.', code: 'overloaded' } }
    const rehearsal = await playing(
      { ...abc, errorInStream },
      { ...abc, errorInStream },
      { ...abc, errorInStream },
    )
    const { text, whole } = await receive(await post(rehearsal))
    expect(whole).toBe(true)
    expect(deltasIn(text)).toBe(1)
    expect(dataOf(text).at(-1)).toBe('{"error":{"message":"Overloaded.","code":"overloaded"}}')
    await expect(stream(rehearsal)).rejects.toBeInstanceOf(APIError)
    expect(await (await post(rehearsal, body())).json()).toEqual({ error: errorInStream.error })
  })
})

describe('headers of a turn', () => {
  test('are sent, and replace those of the rehearsal', async () => {
    const headers = { 'X-Request-Id': 'r1', 'Content-Type': 'text/plain', 'Content-Length': '1' }
    const response = await post(await playing({ text: 'Hi', headers }), body())
    expect(response.headers.get('x-request-id')).toBe('r1')
    expect(response.headers.get('content-type')).toBe('text/plain')
    expect(JSON.parse(await response.text())).toMatchObject({ object: 'chat.completion' })
  })
})

describe('a cut', () => {
  test.each([
    [0, 0],
    [2, 2],
    [99, 3],
  ])('after %i deltas breaks the connection when %i have arrived', async (cutAfter, arrive) => {
    const { text, whole } = await receive(await post(await playing({ ...abc, cutAfter })))
    expect(whole).toBe(false)
    expect(deltasIn(text)).toBe(arrive)
    expect(text).not.toMatch('"finish_reason":"stop"')
  })

  test('sends half of an unstreamed body', async () => {
    const { text, whole } = await receive(await post(await playing({ ...abc, cutAfter: 0 }), body()))
    expect(whole).toBe(false)
    expect(text).toMatch(/^{"id":/)
    expect(() => JSON.parse(text)).toThrow(SyntaxError)
  })
})

describe('a turn that hangs', () => {
  test('never answers, and ends when the rehearsal closes', async () => {
    const rehearsal = await playing({ hang: true }, { text: 'Hi' })
    const answer = post(rehearsal).catch((error: unknown) => error)
    while (rehearsal.requests.length === 0) await new Promise(setImmediate)
    expect((await post(rehearsal)).status).toBe(200)
    await rehearsal.close()
    expect(await answer).toMatchObject({ name: 'TypeError' })
  })

  test('sends its deltas first, and ends when the rehearsal closes', async () => {
    const rehearsal = await playing({ ...abc, hang: 2 })
    const reader = (await post(rehearsal)).body?.getReader()
    let text = ''
    while (deltasIn(text) < 2) text += Buffer.from((await reader?.read())?.value ?? []).toString()
    const next = reader?.read()
    await rehearsal.close()
    await expect(next).rejects.toThrow()
    expect(deltasIn(text)).toBe(2)
  })

  test('ends when the client disconnects', async () => {
    const rehearsal = await playing({ hang: true }, { text: 'Hi' })
    const controller = new AbortController()
    const answer = post(rehearsal, undefined, controller.signal)
    while (rehearsal.requests.length === 0) await new Promise(setImmediate)
    controller.abort()
    await expect(answer).rejects.toThrow()
    expect((await post(rehearsal)).status).toBe(200)
  })
})

describe('delays', () => {
  test('follow the injected clock: first delayMs, then chunkDelayMs between writes', async () => {
    const clock = new SimulatedClock()
    const sleeping = jest.spyOn(clock, 'setTimeout')
    const rehearsal = await start({
      scenario: { turns: [{ ...abc, delayMs: 1000, chunkDelayMs: 50 }] },
      clock,
    })
    const slept = async (times: number): Promise<void> => {
      while (sleeping.mock.calls.length < times) await new Promise(setImmediate)
    }
    const answer = post(rehearsal)
    await slept(1)
    clock.increment(1000)
    const reader = (await answer).body?.getReader()
    let text = ''
    for (let writes = 1; writes <= 6; writes++) {
      text += Buffer.from((await reader?.read())?.value ?? []).toString()
      expect(dataOf(text)).toHaveLength(writes)
      if (writes === 6) break
      await slept(1 + writes)
      clock.increment(50)
    }
    expect(sleeping.mock.calls.map(([, ms]) => ms)).toEqual([1000, 50, 50, 50, 50, 50])
    expect((await reader?.read())?.done).toBe(true)
  })

  test('leave no timer when the client disconnects', async () => {
    const clock = new SimulatedClock()
    const cleared = jest.spyOn(clock, 'clearTimeout')
    const sleeping = jest.spyOn(clock, 'setTimeout')
    const rehearsal = await start({ scenario: { turns: [{ delayMs: 60_000 }] }, clock })
    const answer = post(rehearsal).catch(() => 'gone')
    while (sleeping.mock.calls.length === 0) await new Promise(setImmediate)
    await rehearsal.close()
    expect(await answer).toBe('gone')
    while (cleared.mock.calls.length === 0) await new Promise(setImmediate)
    expect(cleared).toHaveBeenCalledTimes(1)
  })
})
