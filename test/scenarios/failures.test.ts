import { played, stage } from '../support/play.js'
import { call, text, tool } from '../support/tools.js'
import type { Turn } from '../../src/rehearsal/index.js'
import { longTest } from '../support/extent.js'

describe('a permanent failure', () => {
  const cases: [what: string, turn: Turn, code: string, advice: RegExp][] = [
    [
      'an exhausted account',
      { status: 429, error: { message: 'You exceeded your current quota.', code: 'insufficient_quota' } },
      'insufficient_quota',
      /balance/,
    ],
    ['an invalid key', { status: 401 }, 'invalid_api_key', /API key/],
    [
      'a model that does not exist',
      { status: 404, error: { message: 'The model does not exist.', code: 'model_not_found' } },
      'model_not_found',
      /model name/,
    ],
    ['an invalid request', { status: 400 }, 'invalid_request_error', /parameters/],
    ['a forbidden region', { status: 403, error: { message: 'No.' } }, 'invalid_request_error', /region/],
  ]

  it.each(cases)(
    '%s ends the run immediately, with a code and a remedy',
    async (_what, turn, code, advice) => {
      const { result, of } = await played([turn])
      expect(result).toMatchObject({ state: 'ERROR', reason: 'provider_error', steps: 0 })
      expect(result.error).toMatchObject({ code, recoverable: false })
      expect(result.error?.message).toMatch(advice)
      expect(of('retry')).toEqual([])
      expect(of('error')).toMatchObject([result.error])
    },
  )

  it('a request that is too long for the model ends in ERROR/context_overflow', async () => {
    const error = {
      message: "This model's maximum context length is 10 tokens.",
      code: 'context_length_exceeded',
    }
    const { result } = await played([{ status: 400, error }])
    expect(result).toMatchObject({ state: 'ERROR', reason: 'context_overflow' })
    expect(result.error?.message).toMatch(/Shorten/)
  })

  it('a web page instead of an API ends the run with an explanation', async () => {
    const body = '<!DOCTYPE html><html><body>Welcome</body></html>'
    const { result } = await played([{ raw: { body, headers: { 'content-type': 'text/html' } } }])
    expect(result).toMatchObject({ state: 'ERROR', error: { code: 'invalid_response' } })
    expect(result.error?.message).toMatch(/web page.*base URL/)
    expect(result.error?.message).not.toContain('Welcome')
  })

  it('an unreachable server ends the run after its attempts', async () => {
    const theatre = await stage([text('Nobody hears this.')])
    await theatre.rehearsal.close()
    const play = theatre.run().skipBackOff()
    const result = await play.end(0, 3)
    expect(result).toMatchObject({ state: 'ERROR', reason: 'provider_error', steps: 0 })
    expect(result.error).toMatchObject({ code: 'connection', recoverable: true })
    expect(result.error?.message).toMatch(/base URL/)
  })

  it('never shows the key', async () => {
    const key = 'sk-proj-abcdefghijklmnopqrstuvwxyz0123456789'
    const error = { message: `Incorrect API key provided: ${key}.`, code: 'invalid_api_key' }
    const { result, events } = await played([{ status: 401, error }])
    expect(result.error?.code).toBe('invalid_api_key')
    expect(JSON.stringify([result, events])).not.toContain('abcdefghij')
  })
})

describe('unusual data from the provider', () => {
  longTest(
    'arguments of 10 MB reach the tool whole',
    async () => {
      const blob = 'x'.repeat(10 * 1024 * 1024)
      const store = tool('store', ({ data }) => `stored ${String(data).length}`)
      const turns = [call('store', { data: blob }, { chunkSize: 1 << 20 }), text('Stored.')]
      const { result } = await played(turns, { tools: [store] })
      expect(result.state).toBe('COMPLETED')
      expect(store.inputs).toEqual([{ data: blob }])
    },
    20_000,
  )

  it('invalid UTF-8 becomes replacement characters, and nothing breaks', async () => {
    const body = Buffer.concat([
      Buffer.from('data: {"choices":[{"index":0,"delta":{"content":"a'),
      Buffer.from([0xff, 0xfe, 0xe4]),
      Buffer.from(
        '"}}]}\n\ndata: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
      ),
    ])
    const { result } = await played([{ raw: { body: body.toString('base64'), encoding: 'base64' } }])
    expect(result.state).toBe('COMPLETED')
    expect(result.output).toMatch(/^a\uFFFD+$/)
  })

  it('an answer is the same for any chunk boundaries', async () => {
    for (const split of ['bytes', 'whole', [1, 5, 100]] as const) {
      const { result } = await played([text('Grüße 🙂', { split: split as 'bytes' })])
      expect(result.output).toBe('Grüße 🙂')
    }
  })

  it('invalid or missing JSON is an error or an empty answer, never a hang', async () => {
    const other = await played([{ raw: { body: '{"hello":"world"}' } }])
    expect(other.result).toMatchObject({ state: 'ERROR', error: { code: 'invalid_response' } })
    const nothing = await stage([{ raw: { body: '' } }], {}, 'repeatLast')
    const play = nothing.run().skipBackOff()
    expect(await play.end(3)).toMatchObject({ state: 'ERROR', reason: 'incomplete_response' })
  })
})
