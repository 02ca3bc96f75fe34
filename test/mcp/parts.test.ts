import fc from 'fast-check'
import { capResponse } from '../../src/mcp/client/cap-response.js'
import { truncate } from '../../guards/lib/words.js'
import { stripInvisible } from '../../src/mcp/client/plain-text.js'
import { createTextTail } from '../../src/mcp/client/wires.js'
import { createToolNames } from '../../src/mcp/client/mcp-tools.js'
import { unicodeText } from '../support/unicode-text.js'
import { sampled } from '../support/extent.js'

const anyText = unicodeText({ maxLength: 200 })

describe('createToolNames', () => {
  it('gives every tool a unique, valid and stable name', () => {
    fc.assert(
      fc.property(anyText, fc.uniqueArray(anyText, { maxLength: 50 }), (server, tools) => {
        const findName = createToolNames(server)
        const first = tools.map((tool) => findName(tool))
        for (const name of first) expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/)
        expect(new Set(first).size).toBe(tools.length)
        expect(tools.toReversed().map((tool) => findName(tool))).toEqual(first.toReversed())
      }),
    )
  })

  it('keeps a bounded number of names', () => {
    const findName = createToolNames('a')
    for (let i = 0; i < 10_000; i += 1) findName(`${i}`)
    expect(findName('one more')).toBeUndefined()
    expect(findName('9999')).toBe('a_9999')
  })
})

describe('stripInvisible', () => {
  it('removes all invisible characters, and keeps all visible ones', () => {
    expect(stripInvisible('a\u0000\u001b[31mb\u200b\u202e\u{e0041}\ud800\n\tc👩‍🚀é')).toBe('a[31mb\n\tc👩🚀é')
  })
})

describe('cut', () => {
  it('respects the limit without splitting a character', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.integer({ min: 1, max: 50 }), (text, limit) => {
        const short = truncate(text, limit)
        expect(short.length).toBeLessThanOrEqual(limit)
        expect(/\p{Cs}/u.test(short)).toBe(false)
        expect(text.startsWith(short.replace(/…$/, '')) || short === text).toBe(true)
      }),
    )
  })
})

describe('createTextTail', () => {
  it('keeps the end, for any chunks', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.integer({ min: 1, max: 9 }), (text, size) => {
        const tail = createTextTail(20)
        const bytes = new TextEncoder().encode(text)
        for (let at = 0; at < bytes.length; at += size) tail.add(bytes.subarray(at, at + size))
        expect(tail.read()).toBe(text.slice(-20))
      }),
    )
  })
})

describe('capResponse', () => {
  it('passes an event stream exactly if no event exceeds the limit, for any chunks', async () => {
    const lineEnd = fc.constantFrom('\n', '\r\n', '\r')
    const event = fc.record({
      lines: fc.array(fc.string({ minLength: 1, unit: fc.constantFrom('a', 'b') })),
      lineEnd,
    })
    await fc.assert(
      fc.asyncProperty(fc.array(event), fc.integer({ min: 1, max: 9 }), async (events, size) => {
        const texts = events.map(
          ({ lines, lineEnd }) => lines.map((line) => line + lineEnd).join('') + lineEnd,
        )
        const longest = Math.max(
          0,
          ...events.map(({ lines }) => lines.reduce((sum, line) => sum + line.length + 1, 0)),
        )
        const read = (limit: number): Promise<string> => {
          const chunks = texts.join('').match(new RegExp(`[^]{1,${size}}`, 'g')) ?? []
          const body = new ReadableStream<Uint8Array>({
            start: (controller) => {
              for (const chunk of chunks) controller.enqueue(new TextEncoder().encode(chunk))
              controller.close()
            },
          })
          const response = new Response(body, { headers: { 'content-type': 'text/event-stream' } })
          return capResponse(response, limit, {
            onExceeded: () => undefined,
            onEnd: () => undefined,
          }).text()
        }
        expect(await read(longest)).toBe(texts.join(''))
        if (longest > 0) await expect(read(longest - 1)).rejects.toThrow('bytes in one message')
      }),
      { numRuns: sampled(50) },
    )
  })
})
