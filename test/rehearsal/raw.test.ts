import { existsSync, readFileSync } from 'node:fs'
import { createConnection } from 'node:net'
import * as fc from 'fast-check'
import type { Rehearsal } from '../../src/rehearsal/index.js'
import { body, playing, post, receive, start, stream, textIn } from './support.js'
import { sampled } from '../support/extent.js'

const sse = 'data: {"choices":[{"index":0,"delta":{"content":"ä🙂"}}]}\r\n\r\n: ping\n\ndata: [DONE]'

describe('a raw response', () => {
  test('is sent byte for byte with its status and headers, with new framing', async () => {
    const headers = { 'Content-Type': 'text/weird', 'Content-Length': '3', 'Transfer-Encoding': 'gzip' }
    const response = await post(await playing({ raw: { status: 418, headers, body: sse } }))
    expect(response.status).toBe(418)
    expect(response.headers.get('content-type')).toBe('text/weird')
    expect((await receive(response)).text).toBe(sse)
  })

  test('can be bytes that are not text', async () => {
    const bytes = Buffer.from([0, 255, 128, 10])
    const rehearsal = await playing({ raw: { body: bytes.toString('base64'), encoding: 'base64' } })
    expect(Buffer.concat((await receive(await post(rehearsal))).pieces)).toEqual(bytes)
  })

  test('has the content type of the request by default', async () => {
    const rehearsal = await playing({ raw: { body: sse } }, { raw: { body: '{}' } })
    expect((await post(rehearsal)).headers.get('content-type')).toMatch('text/event-stream')
    expect((await post(rehearsal, body())).headers.get('content-type')).toBe('application/json')
  })

  test('reaches the client in the writes that split requests', async () => {
    const raw = { body: 'abcdefg' }
    const rehearsal = await playing(
      { raw },
      { raw, split: 'whole' },
      { raw, split: 'bytes' },
      { raw, split: [2, 3] },
      { raw, split: [2, 3], cutAfter: 2 },
    )
    const arrived: string[][] = []
    for (let i = 0; i < 5; i++) arrived.push(await writesOf(rehearsal))
    expect(arrived).toEqual([
      ['abcdefg'],
      ['abcdefg'],
      ['a', 'b', 'c', 'd', 'e', 'f', 'g'],
      ['ab', 'cde', 'fg'],
      ['ab', 'cde'],
    ])
  })

  test('is the same bytes under every split', async () => {
    const splits = fc.oneof(
      fc.constantFrom('whole' as const, 'bytes' as const),
      fc.array(fc.integer({ min: 1, max: 40 })),
    )
    const current: { split: 'whole' | 'bytes' | number[] } = { split: 'whole' }
    const turn = () => ({ raw: { body: sse }, split: current.split })
    const rehearsal = await start({ turns: [turn], onExhausted: 'loop' })
    const check = fc.asyncProperty(splits, async (split) => {
      current.split = split
      expect((await receive(await post(rehearsal))).text).toBe(sse)
    })
    await fc.assert(check, { numRuns: sampled(40) })
  })
})

describe('split', () => {
  test('also splits the events of an ordinary turn, and the client reads the same text', async () => {
    const rehearsal = await playing(
      { text: 'Grüße 🙂', split: 'bytes' },
      { text: 'Grüße 🙂', split: 'whole' },
    )
    expect(textIn(await stream(rehearsal))).toBe('Grüße 🙂')
    expect((await receive(await post(rehearsal))).pieces).toHaveLength(1)
  })
})

const recordings = '../shared/recordings'
const found = existsSync(`${recordings}/INDEX.jsonl`)
if (!found) console.warn(`Skipped: no recorded traffic at ${recordings}`)

;(found ? describe : describe.skip)('recorded traffic', () => {
  test('replays a recording', async () => {
    const lines = readFileSync(`${recordings}/INDEX.jsonl`, 'utf8').trim().split('\n')
    const files = lines.map((line) => JSON.parse(line) as { file: string; api: string; stream: boolean })
    const tapes = files.filter(({ api, stream, file }) => api === 'chat' && stream && file.endsWith('.json'))
    const responses = Array.from(new Set(tapes.map(({ file }) => file))).flatMap((file) => {
      const tape = JSON.parse(readFileSync(`${recordings}/${file}`, 'utf8')) as Tape
      return tape.interactions.map(({ response }) => response)
    })
    expect(responses.length).toBeGreaterThan(10)
    const rehearsal = await playing(...responses.map((raw) => ({ raw })))
    for (const { status, body } of responses) {
      const response = await post(rehearsal)
      expect(response.status).toBe(status)
      expect((await receive(response)).text).toBe(body)
    }
  })
})

/** The chunks of an answer on the wire, because fetch may merge two chunks. */
async function writesOf({ url }: Rehearsal): Promise<string[]> {
  const socket = createConnection(Number(new URL(url).port), '127.0.0.1')
  const request = body({ stream: true })
  socket.write(`POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n`)
  socket.write(`Content-Length: ${request.length}\r\n\r\n${request}`)
  const wire = Buffer.concat(await socket.toArray()).toString()
  const chunks = wire.slice(wire.indexOf('\r\n\r\n') + 4).split('\r\n')
  return chunks.filter((text, i) => i % 2 === 1 && text !== '')
}

interface Tape {
  interactions: { response: { status: number; headers: Record<string, string>; body: string } }[]
}
