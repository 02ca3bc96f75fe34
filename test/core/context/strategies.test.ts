import * as fc from 'fast-check'
import { countDropped, type Fit } from '../../../machines/agent/fit.js'
import type { Message } from '../../../machines/agent/messages.js'
import { fitMessages } from '../../../src/core/context/fit-messages.js'
import { findLandmarks, listLeftOut } from '../../../src/core/context/gap.js'
import { fitCompact, fitSlidingWindow, type FitStrategy } from '../../../src/core/context/strategies.js'
import {
  planSummary,
  fitWithoutSummary,
  fitWithSummary,
} from '../../../src/core/context/strategies/summarize.js'
import { findHistoryProblem } from '../../support/history.js'
import { textOf } from '../../support/play.js'
import { counter, histories, nextFit, requestPoints, sizeOf, stamped } from './histories.js'
import { runsAll, sampled } from '../../support/extent.js'

const windows = fc.integer({ min: 30, max: 1_200 })
const strategies: [string, FitStrategy][] = [
  ['sliding_window', fitSlidingWindow],
  ['compact', fitCompact],
  ['summarize without a summary', fitWithoutSummary],
  [
    'summarize',
    (situation) => {
      const plan = planSummary(situation)
      return plan === null ? fitWithoutSummary(situation) : fitWithSummary(situation, plan.gap, 'Notes.')
    },
  ],
]

/** The parts that must stay: lead, newest user message, steering, newest unit. */
function indispensable(messages: readonly Message[]): Set<Message> {
  const { lead, userIndices, latest } = findLandmarks(messages)
  return new Set(messages.filter((_, i) => i < lead || i >= latest || userIndices.includes(i)))
}

function leastSize(messages: readonly Message[]): number {
  const stays = [...indispensable(messages)].reduce((sum, message) => sum + counter.message(message), 0)
  return sizeOf([], null) + stays
}

/** Asserts that a rule was checked against this many histories, because a random sample may contain few. */
const fewest = runsAll ? 10 : 0

function contains(fitted: readonly Message[], message: Message): boolean {
  return fitted.some(
    (each) => each === message || (message.role === 'user' && textOf(each).includes(words(message))),
  )
}

function words(message: Message): string {
  const { content } = message
  return typeof content === 'string' ? content : JSON.stringify(content).slice(1, -1)
}

describe.each(strategies)('%s', (_name, strategy) => {
  /** Every fitted request of every history, before and after. */
  function holds(
    rule: (messages: Message[], fit: Fit, fitted: readonly Message[], window: number) => void,
  ): void {
    let fits = 0
    fc.assert(
      fc.property(histories, windows, (messages, window) => {
        const fit = nextFit(strategy, messages, window)
        if (fit == null) return
        fits++
        rule(messages, fit, fitMessages(messages, fit), window)
      }),
      { numRuns: sampled(200) },
    )
    expect(fits).toBeGreaterThan(fewest)
  }

  it('never exceeds the window', () => {
    holds((messages, fit, _fitted, window) => {
      expect(sizeOf(messages, fit)).toBeLessThanOrEqual(window)
    })
  })

  it('refuses a request exactly if its required content does not fit', () => {
    fc.assert(
      fc.property(histories, windows, (messages, window) => {
        fc.pre(sizeOf(messages, null) > window)
        const refused = nextFit(strategy, messages, window) === undefined
        const needed = leastSize(messages)
        // Joined messages have slightly fewer tokens than the sum.
        if (needed <= window) expect(refused).toBe(false)
        if (needed > window + 4 * messages.length) expect(refused).toBe(true)
      }),
    )
  })

  it('never separates a call from its results, and keeps the order', () => {
    holds((messages, _fit, fitted) => {
      expect(findHistoryProblem([...fitted])).toBeNull()
      const places = fitted.map((message) => messages.indexOf(message)).filter((index) => index >= 0)
      expect(places).toEqual(places.toSorted((a, b) => a - b))
    })
  })

  it('keeps the newest user message, its steering, and the newest unit', () => {
    holds((messages, _fit, fitted) => {
      for (const message of indispensable(messages)) expect(contains(fitted, message)).toBe(true)
    })
  })

  it('starts with a user message, after the system messages', () => {
    holds((_messages, _fit, fitted) => {
      expect(fitted.find(({ role }) => role !== 'system')?.role).toBe('user')
    })
  })

  it('creates no consecutive user messages', () => {
    holds((messages, _fit, fitted) => {
      for (const [i, message] of fitted.entries()) {
        if (message.role !== 'user' || fitted[i - 1]?.role !== 'user') continue
        expect(messages[messages.indexOf(message) - 1]?.role).toBe('user')
      }
    })
  })

  it('reduces the request to three quarters of the window if that requires dropping older turns', () => {
    holds((messages, fit, _fitted, window) => {
      const { opening, latest } = findLandmarks(messages)
      const size = sizeOf(messages, fit)
      if (size > window * 0.75) expect([opening, latest]).toContain(fit.from)
      if (fit.from < opening) expect(size).toBeLessThanOrEqual(window * 0.75)
    })
  })

  it('keeps a fit until it is too small, and never restores dropped content', () => {
    let refits = 0
    fc.assert(
      fc.property(histories, windows, (messages, window) => {
        let fit: Fit | null = null
        for (const transcript of requestPoints(messages)) {
          const next = nextFit(strategy, transcript, window, fit)
          if (next === undefined) return
          if (fit !== null && sizeOf(transcript, fit) <= window) expect(next).toBe(fit)
          else if (fit !== null) {
            refits++
            const [was, is] = [listLeftOut(transcript, fit), next ? listLeftOut(transcript, next) : []]
            expect(was.filter((message) => !is.includes(message))).toEqual([])
          }
          fit = next
        }
      }),
      { numRuns: sampled(150) },
    )
    expect(refits).toBeGreaterThan(fewest)
  })
})

describe('sliding_window', () => {
  it('drops content after the newest user message only as a last resort', () => {
    let whole = 0
    fc.assert(
      fc.property(histories, windows, (messages, window) => {
        const fit = nextFit(fitSlidingWindow, messages, window)
        if (fit == null) return
        const { lead, opening } = findLandmarks(messages)
        const turn = messages.filter((_, i) => i < lead || i >= opening)
        if (sizeOf(turn, null) > window) return
        whole++
        expect(fit.from).toBeLessThanOrEqual(opening)
      }),
      { numRuns: sampled(200) },
    )
    expect(whole).toBeGreaterThan(fewest)
  })

  it('drops the oldest complete units of a turn that outgrows the window', () => {
    const batch = (n: number) => [
      {
        role: 'assistant' as const,
        content: null,
        tool_calls: [{ id: `c${n}`, type: 'function' as const, function: { name: 'read', arguments: '{}' } }],
      },
      { role: 'tool' as const, tool_call_id: `c${n}`, content: 'x'.repeat(400) },
    ]
    const messages = stamped([
      { role: 'user', content: 'Old.' },
      { role: 'assistant', content: 'Yes.' },
      { role: 'user', content: 'New.' },
      ...[1, 2, 3, 4, 5].flatMap(batch),
    ])
    const fit = nextFit(fitSlidingWindow, messages, 400)
    expect(fit).toEqual({ head: 0, keep: [2], from: 9, note: null })
    const fitted = fitMessages(messages, fit ?? null)
    expect(fitted.map(({ id }) => id)).toEqual(['m3', 'm10', 'm11', 'm12', 'm13'])
  })
})

describe('compact', () => {
  const messages = stamped([
    { role: 'user', content: 'The task.' },
    ...Array.from({ length: 4 }, (_, i) => [
      {
        role: 'assistant' as const,
        content: null,
        tool_calls: ['read', 'find'].map((name) => ({
          id: `${name}${i}`,
          type: 'function' as const,
          function: { name, arguments: '{}' },
        })),
      },
      { role: 'tool' as const, tool_call_id: `read${i}`, content: 'x'.repeat(400) },
      { role: 'tool' as const, tool_call_id: `find${i}`, content: 'y'.repeat(400) },
    ]).flat(),
  ])

  it('keeps the first user message and states which part was dropped, when, and its tools', () => {
    const fit = nextFit(fitCompact, messages, 800)
    expect(fit).toEqual({
      head: 1,
      from: 7,
      note:
        '[6 messages of this conversation omitted here to fit the context window; 2 answers, 4 tool results; ' +
        'tools called: read ×2, find ×2; from 1970-01-01T00:00:01.000Z to 1970-01-01T00:00:06.000Z.]',
    })
    const fitted = fitMessages(messages, fit ?? null)
    expect(fitted[0]?.content).toBe(`The task.\n\n${fit?.note}`)
    expect(fitted.slice(1)).toEqual(messages.slice(7))
  })

  it('drops the first message, then the marker, before it fails', () => {
    const long = stamped([
      { role: 'user', content: 'z'.repeat(2_000) },
      { role: 'assistant', content: 'Yes.' },
      { role: 'user', content: 'Now this.' },
    ])
    const fit = nextFit(fitCompact, long, 150)
    expect(fit).toMatchObject({ head: 0, from: 1, note: expect.stringContaining('1 message ') })
    const least = leastSize(long)
    expect(nextFit(fitCompact, long, least)).toEqual({ head: 0, from: 2, note: null })
    expect(nextFit(fitCompact, long, least - 1)).toBeUndefined()
  })

  it('keeps the first user message of every history that has room for it', () => {
    let count = 0
    fc.assert(
      fc.property(histories, windows, (messages, window) => {
        const fit = nextFit(fitCompact, messages, window)
        const first = messages.find(({ role }) => role === 'user')
        if (fit?.note == null || first === undefined) return
        const marker = counter.text(fit.note) + 50
        if (leastSize(messages) + counter.message(first) + marker > window) return
        count++
        expect(contains(fitMessages(messages, fit), first)).toBe(true)
      }),
      { numRuns: sampled(200) },
    )
    expect(count).toBeGreaterThan(fewest)
  })
})

it('counts exactly the messages in the gap as dropped', () => {
  fc.assert(
    fc.property(histories, windows, (messages, window) => {
      const fit = nextFit(fitCompact, messages, window) ?? null
      expect(countDropped(fit)).toBe(fit === null ? 0 : listLeftOut(messages, fit).length)
    }),
  )
})
