import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import fc from 'fast-check'
import { opa } from '../../src/opa/index.js'
import { pay } from './paying.js'
import { sampled } from '../support/extent.js'

/** A server that speaks OPA's Data API: it returns the `result` of a rule, or no result if the rule is undefined. */
async function serve(rule: (input: { arguments: { amount: number } }) => unknown) {
  const requests: { url: string | undefined; headers: object; input: object }[] = []
  const server = createServer((request, response) => {
    const pieces: Buffer[] = []
    request.on('data', (piece: Buffer) => pieces.push(piece))
    request.on('end', () => {
      const { input } = JSON.parse(Buffer.concat(pieces).toString()) as { input: never }
      requests.push({ url: request.url, headers: request.headers, input })
      response.setHeader('content-type', 'application/json')
      response.setHeader('connection', 'close')
      response.end(JSON.stringify({ result: rule(input) }))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/data/agent/decision`
  return { url, requests, close: () => new Promise((resolve) => server.close(resolve)) }
}

describe('opa', () => {
  it('decides by the result of the rule', async () => {
    const approvers = { roles: ['finance'], count: 2 }
    const { url, requests, close } = await serve(({ arguments: { amount } }) => {
      if (amount < 100) return true
      if (amount < 1000) return { decision: 'ask', rule: 'two-people', approvers }
      return amount < 5000 ? false : undefined
    })
    const policy = opa({ url, headers: { authorization: 'Bearer 7f3a' } })
    expect(await pay(policy, { amount: 50 })).toMatchObject({ outcome: 'runs' })
    expect(await pay(policy, { amount: 500 })).toMatchObject({ outcome: 'asks', approvers: [approvers] })
    expect(await pay(policy, { amount: 2000 })).toMatchObject({ outcome: 'denied', rule: undefined })
    expect(await pay(policy, { amount: 9000 })).toMatchObject({ outcome: 'denied', rule: 'undefined' })
    expect(requests[0]).toMatchObject({
      url: '/v1/data/agent/decision',
      headers: { authorization: 'Bearer 7f3a' },
      input: { tool: { name: 'pay' }, requester: { id: 'ann' }, session: { id: 'ann:7' }, path: [] },
    })
    expect(JSON.stringify(requests)).not.toContain('secret')
    await close()
  })

  it('sends a custom input', async () => {
    const { url, requests, close } = await serve(() => true)
    await pay(opa({ url, input: ({ context }) => ({ tenant: context }) }), {})
    expect(requests[0]?.input).toEqual({ tenant: { secret: 'no' } })
    await close()
  })

  it('denies if it fails in any way', async () => {
    const body = fc.oneof(
      fc.json(),
      fc.string(),
      fc.anything().map((result) => `{"result":${JSON.stringify(result) ?? 'null'}}`),
    )
    const isYes = (text: string): boolean => {
      try {
        const { result } = JSON.parse(text) as { result?: unknown }
        return result === true || result === 'allow'
      } catch {
        return false
      }
    }
    await fc.assert(
      fc.asyncProperty(body, fc.constantFrom(200, 204, 302, 404, 500, 0), async (text, status) => {
        fc.pre(!isYes(text))
        const send = (): Promise<Response> =>
          status === 0
            ? Promise.reject(new TypeError('fetch failed'))
            : Promise.resolve(new Response(status === 204 ? null : text, { status }))
        expect(await pay(opa({ url: 'http://opa.test/', fetch: send }), {})).toMatchObject({
          outcome: 'denied',
        })
      }),
      { numRuns: sampled(60) },
    )
    const refused = opa({
      url: 'http://opa.test/',
      fetch: () => Promise.resolve(new Response('{"result":true}', { status: 500 })),
    })
    expect(await pay(refused, {})).toMatchObject({ outcome: 'denied', rule: 'policy_error' })
  })

  it.each(['', 'opa', 'file:///etc/opa', 'ftp://opa.test'])('refuses the address %j', (url) => {
    expect(() => opa({ url })).toThrow(expect.objectContaining({ code: 'invalid_option', subject: 'url' }))
  })
})
