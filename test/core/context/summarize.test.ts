import * as fc from 'fast-check'
import type { Fit } from '../../../machines/agent/fit.js'
import type { Message } from '../../../machines/agent/messages.js'
import { listLeftOut } from '../../../src/core/context/gap.js'
import {
  planSummary,
  fitWithoutSummary,
  fitWithSummary,
} from '../../../src/core/context/strategies/summarize.js'
import { createSummaryRequest } from '../../../src/core/context/summary-request.js'
import { textOf } from '../../support/play.js'
import { counter, histories, nextFit, requestOf, requestPoints, sizeOf, stamped } from './histories.js'
import { sampled } from '../../support/extent.js'

const windows = fc.integer({ min: 150, max: 1_200 })

describe('summaries', () => {
  it('cover every message once, even if one fails; the next one includes the failed part', () => {
    let summaries = 0
    let failures = 0
    fc.assert(
      fc.property(histories, windows, fc.infiniteStream(fc.boolean()), (messages, window, works) => {
        let fit: Fit | null = null
        const read: Message[] = []
        for (const transcript of requestPoints(messages)) {
          const next = nextFit(
            (situation) => {
              const plan = planSummary(situation)
              if (plan === null) return fitWithoutSummary(situation)
              expect(plan.earlier === null).toBe(read.length === 0)
              const newly = listLeftOut(transcript, plan.gap).filter((message) => !read.includes(message))
              expect(plan.fresh).toEqual(newly)
              if (plan.fresh.length === 0 || !works.next().value) {
                failures++
                return fitWithoutSummary(situation)
              }
              summaries++
              read.push(...plan.fresh)
              return fitWithSummary(situation, plan.gap, `Notes up to ${read.at(-1)?.id}.`)
            },
            transcript,
            window,
            fit,
          )
          if (next === undefined) return
          const isForgotten = next !== null && next.summary === undefined
          if (isForgotten) read.length = 0
          else if (read.length > 0 && next !== null)
            expect(next.note).toContain(`Notes up to ${read.at(-1)?.id}.`)
          fit = next
        }
        expect(new Set(read).size).toBe(read.length)
      }),
      { numRuns: sampled(200) },
    )
    expect(summaries).toBeGreaterThan(sampled(20))
    expect(failures).toBeGreaterThan(sampled(20))
  })

  it('stay if the next one fails, with a marker for the rest', () => {
    const long = (n: number): Message[] =>
      stamped(
        Array.from({ length: n }, (_, i) => [
          { role: 'user' as const, content: `Question ${i}. ${'x'.repeat(200)}` },
          { role: 'assistant' as const, content: `Answer ${i}. ${'y'.repeat(200)}` },
        ]).flat(),
      ).slice(0, -1)
    const window = 800
    const summed = nextFit(
      (situation) => {
        const plan = planSummary(situation)
        return plan && fitWithSummary(situation, plan.gap, 'Everything so far.')
      },
      long(8),
      window,
    )
    const fit = nextFit(fitWithoutSummary, long(14), window, summed)
    expect(fit?.note).toMatch(
      /^\[Notes on \d+ earlier .*\]\nEverything so far\.\n\n\[\d+ messages .* omitted/,
    )
    expect(fit?.summary).toEqual(summed?.summary)
    expect(sizeOf(long(14), fit ?? null)).toBeLessThanOrEqual(window)
  })
})

describe('the room for a summary', () => {
  it.each([
    [800, 100],
    [20_000, 2_500],
    [100_000, 4_096],
  ])('in a window of %i tokens is %i tokens', (window, limit) => {
    const long = stamped(
      Array.from({ length: 40 }, (_, i) => [
        { role: 'user' as const, content: `Question ${i}. ${'x '.repeat(window / 10)}` },
        { role: 'assistant' as const, content: `Answer ${i}.` },
      ])
        .flat()
        .slice(0, -1),
    )
    const limits: (number | undefined)[] = []
    nextFit(
      (situation) => {
        limits.push(planSummary(situation)?.limit)
        return fitWithoutSummary(situation)
      },
      long,
      window,
    )
    expect(new Set(limits)).toEqual(new Set([limit]))
  })
})

describe('a request for a summary', () => {
  const fresh = stamped([
    { role: 'user', content: 'Read a.txt.' },
    {
      role: 'assistant',
      content: 'I will.',
      tool_calls: [{ id: 'c1', type: 'function', function: { name: 'read', arguments: '{"path":"a.txt"}' } }],
    },
    { role: 'tool', tool_call_id: 'c1', content: 'r'.repeat(50_000) },
    { role: 'assistant', content: 'It is full of r.' },
  ])
  const base = {
    ...requestOf([], null),
    sampling: { temperature: 0, stop: 'x' },
    extraBody: { tools: [], a: 1 },
  }
  const plan = { gap: { head: 0, from: 4 }, fresh, earlier: 'He likes files.', limit: 100 }
  const requestFor = (window: number) =>
    createSummaryRequest(base, plan, (request) => counter.request(request) <= window)

  it('contains the earlier notes and the new messages, without tools or a forced format', () => {
    const request = requestFor(100_000)
    expect(request).toMatchObject({
      tools: [],
      nudges: [],
      sampling: { temperature: 0 },
      extraBody: { tools: null, a: 1 },
    })
    expect(request?.sampling).not.toHaveProperty('stop')
    expect(request?.instructions).toContain('at most 50 words')
    const text = textOf(request?.messages[0])
    for (const part of [
      'He likes files.',
      'user: Read a.txt.',
      'assistant: I will.',
      'assistant calls read: {"path":"a.txt"}',
    ]) {
      expect(text).toContain(part)
    }
    expect(text).toContain(`result of read: ${'r'.repeat(3_999)}…`)
  })

  it('truncates tool results until it fits the window, and fails if nothing helps', () => {
    const request = requestFor(400)
    expect(counter.request(request ?? base)).toBeLessThanOrEqual(400)
    expect(textOf(request?.messages[0])).toContain('user: Read a.txt.')
    expect(requestFor(100)).toBeNull()
  })
})
