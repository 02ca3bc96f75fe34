import { countTokens } from 'gpt-tokenizer/encoding/o200k_base'
import { type AgentOptions, createSession } from '../../src/index.js'
import { findHistoryProblem } from '../../src/rehearsal/request-problem.js'
import type { RecordedRequest, Turn, WireMessage } from '../../src/rehearsal/index.js'
import { stage, type Stage, textOf } from '../support/play.js'
import { call, text, tool } from '../support/tools.js'
import { sampledKinds, sampledRows } from '../support/extent.js'

const window = 1_500
const steps = 30
const usage = { input: 100, output: 10 }
const summaryUsage = { input: 70, output: 7 }
const instructions = 'You are a careful reader.'

const read = () =>
  tool('read', ({ n }) => `Page ${n}: ${Array.from({ length: 100 }, (_, i) => `word${i}of${n}`).join(' ')}`, {
    readOnly: true,
  })

function isSummary({ body }: RecordedRequest): boolean {
  return textOf(body.messages[0]).startsWith('You take notes')
}

/** Reads one page per step, then answers. Returns a summary when asked for one. */
function reader(summary: (n: number) => Turn = (n) => text(`Summary ${n}.`, { usage: summaryUsage })) {
  let [step, summaries] = [0, 0]
  return (request: RecordedRequest): Turn => {
    if (isSummary(request)) return summary(++summaries)
    step++
    return step % steps === 0 ? text('All read.', { usage }) : call('read', { n: step }, { usage })
  }
}

function opened(options: Partial<AgentOptions>, summary?: (n: number) => Turn): Promise<Stage> {
  return stage([reader(summary)], { instructions, tools: [read()], ...options }, 'loop')
}

/** Tokens of a request as sent over the wire. */
function tokensOf({ body }: RecordedRequest): number {
  const asText = { disallowedSpecial: new Set<string>() }
  const texts = body.messages.flatMap((message) => [
    textOf(message),
    ...(message.tool_calls ?? []).flatMap(({ function: { name, arguments: input } }) => [name, input]),
  ])
  const tools = (body.tools ?? []).map((each) => JSON.stringify(each))
  return [...texts, ...tools].reduce(
    (sum, each) => sum + countTokens(each, asText),
    3 + 4 * body.messages.length,
  )
}

function pagesIn(words: string): number[] {
  return [...words.matchAll(/Page (\d+):/g)].map(([, n]) => Number(n))
}

function roles(messages: readonly WireMessage[]): string {
  return messages.map(({ role }) => role).join(' ')
}

const strategies = sampledKinds(['sliding_window', 'compact', 'summarize'] as const)

describe.each(strategies)('a long run with %s', (strategy) => {
  const context = { window, strategy }

  it('keeps every request within the window, complete, and with the newest user message', async () => {
    const theatre = await opened({ context })
    const play = theatre.run('Read everything, and find <|endoftext|>.')
    const result = await play.run.result
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'All read.', steps })

    const summaries = theatre.requests.filter(isSummary)
    await play.end(steps + summaries.length, -summaries.length)
    expect(summaries.length > 0).toBe(strategy === 'summarize')
    for (const request of theatre.requests) {
      expect(tokensOf(request)).toBeLessThanOrEqual(window)
      expect(findHistoryProblem(request.body.messages)).toBeNull()
    }
    for (const { body } of theatre.requests.filter((request) => !isSummary(request))) {
      expect(textOf(body.messages[1])).toContain('Read everything')
      expect(roles(body.messages)).toMatch(/^system user( assistant tool)*$/)
    }
    // The transcript keeps every message.
    expect(result.messages).toHaveLength(2 * steps)
    const results = result.messages.filter(({ role }) => role === 'tool')
    expect(results.map((message) => pagesIn(textOf(message)))).toEqual(
      Array.from({ length: steps - 1 }, (_, i) => [i + 1]),
    )
  })

  it('is fitted again only when the window is full, so that requests share a prefix', async () => {
    const theatre = await opened({ context })
    const play = theatre.run('Read everything.')
    await play.run.result
    const fittings = play.of('context_fitted')
    expect(fittings.length).toBeGreaterThan(2)
    expect(fittings.length).toBeLessThan(steps / 2)
    for (const { before, after, dropped, strategy: by } of fittings) {
      expect(by).toBe(strategy)
      expect(before).toBeGreaterThan(window)
      expect(after).toBeLessThanOrEqual(0.75 * window)
      expect(dropped).toBeGreaterThan(0)
    }
    const openings = theatre.requests
      .filter((request) => !isSummary(request))
      .map(({ body }) => JSON.stringify(body.messages.slice(0, 4)))
    expect(new Set(openings.slice(1)).size).toBe(fittings.length + 1)
  })

  it('continues in the next run of the session from the last fit', async () => {
    const theatre = await opened({ context })
    const session = createSession()
    await theatre.run('Read everything.', { session }).run.result
    const first = theatre.requests.length
    const result = await theatre.run('Once more, from the beginning.', { session }).run.result
    expect(result.state).toBe('COMPLETED')
    expect(result.messages).toHaveLength(4 * steps)
    for (const request of theatre.requests.slice(first)) {
      expect(tokensOf(request)).toBeLessThanOrEqual(window)
      expect(findHistoryProblem(request.body.messages)).toBeNull()
      if (isSummary(request)) continue
      expect(
        request.body.messages
          .filter(({ role }) => role === 'user')
          .map(textOf)
          .join(),
      ).toContain('Once more')
    }
  })
})

describe('compact', () => {
  it('tells the model which messages were omitted', async () => {
    const theatre = await opened({ context: { window, strategy: 'compact' } })
    await theatre.run('Read everything.').run.result
    expect(textOf(theatre.wire(-1)[1])).toMatch(
      /^Read everything\.\n\n\[\d+ messages of this conversation omitted .*tools called: read ×\d+; at 1970-.*\.\]$/,
    )
  })
})

describe('summarize', () => {
  const context = { window, strategy: 'summarize' as const }

  it('extends the previous summary, and shows the model only the latest', async () => {
    const theatre = await opened({ context })
    const play = theatre.run('Read everything.')
    const result = await play.run.result
    const summaries = theatre.requests.filter(isSummary)
    const pages = summaries.map(({ body }) => pagesIn(textOf(body.messages[1])))
    expect(pages.flat()).toEqual(pages.flat().map((_, i) => i + 1))
    for (const [i, { body }] of summaries.entries()) {
      expect(body.tools).toBeUndefined()
      if (i > 0) expect(textOf(body.messages[1])).toContain(`Summary ${i}.`)
    }
    expect(textOf(theatre.wire(-1)[1])).toContain(`Summary ${summaries.length}.`)
    expect(play.of('stream_chunk').filter((chunk) => chunk.text.includes('Summary'))).toEqual([])
    expect(play.of('warning')).toEqual([])
    expect(result.usage).toMatchObject({
      inputTokens: steps * usage.input + summaries.length * summaryUsage.input,
      outputTokens: steps * usage.output + summaries.length * summaryUsage.output,
      estimated: false,
    })
  })

  it('estimates usage that a provider does not report', async () => {
    const theatre = await opened({ context }, () => text('Notes.', { usage: null }))
    const { usage: total } = await theatre.run('Read everything.').run.result
    expect(total.estimated).toBe(true)
    expect(total.inputTokens).toBeGreaterThan(steps * usage.input + window / 8)
  })

  const failures: [string, Turn, RegExp][] = [
    ['fails', { status: 503, error: { message: 'Overloaded.' } }, /Overloaded/],
    ['is empty', text('  '), /empty/],
    ['is refused', { refusal: 'I cannot do that.' }, /refused/],
    ['is cut off', text('Notes on', { finishReason: 'length' }), /cut off/],
    ['is cut off (Anthropic)', text('Notes on', { finishReason: 'max_tokens' }), /cut off/],
    ['is cut off (Gemini)', text('Notes on', { finishReason: 'MAX_TOKENS' }), /cut off/],
    ['is filtered (Gemini)', text('Notes on', { finishReason: 'SAFETY' }), /refused/],
    ['breaks off', text('Notes on the first pages', { cutAfter: 1 }), /connection/],
    ['calls a tool', call('read', { n: 1 }), /called a tool/],
    ['is too long', text('word '.repeat(300)), /longer than 187 tokens/],
  ]
  it.each(sampledRows(failures))(
    'uses a marker with a warning if the summary %s',
    async (_what, turn, why) => {
      const theatre = await opened({ context }, () => turn)
      const play = theatre.run('Read everything.')
      const result = await play.run.result
      expect(result).toMatchObject({ state: 'COMPLETED', steps })
      expect(play.of('context_fitted').map(({ strategy }) => strategy)).toContain('compact')
      expect(play.of('warning')[0]).toMatchObject({
        code: 'context_strategy',
        message: expect.stringMatching(why),
      })
      expect(textOf(theatre.wire(-1)[1])).toContain('messages of this conversation omitted')
      for (const request of theatre.requests) expect(tokensOf(request)).toBeLessThanOrEqual(window)
    },
  )

  it('ends the run in BUDGET_EXCEEDED before the next request if the summary uses up the budget', async () => {
    const limits = { tokenBudget: 5_000 }
    const theatre = await opened({ context, limits }, () =>
      text('Dear notes.', { usage: { input: 5_000, output: 1 } }),
    )
    const play = theatre.run('Read everything.')
    const result = await play.run.result
    expect(result).toMatchObject({ state: 'BUDGET_EXCEEDED', reason: 'token_budget' })
    expect(theatre.requests.findIndex(isSummary)).toBe(theatre.requests.length - 1)
    expect(result.usage.inputTokens).toBe(5_000 + result.steps * usage.input)
    expect(findHistoryProblem(result.messages as unknown as WireMessage[])).toBeNull()
  })

  it('is skipped if budget.preflight leaves no tokens for it', async () => {
    let n = 0
    const dear = () => call('read', { n: ++n }, { usage: { input: 500, output: 10 } })
    const options = { context, budget: { preflight: true }, limits: { tokenBudget: 2_500 } }
    const theatre = await stage([dear], { instructions, tools: [read()], ...options }, 'loop')
    const play = theatre.run('Read everything.')
    expect((await play.run.result).state).toBe('BUDGET_EXCEEDED')
    expect(theatre.requests.length).toBeGreaterThan(2)
    expect(theatre.requests.filter(isSummary)).toEqual([])
    expect(play.of('warning')[0]?.message).toContain('limits.tokenBudget')
  })

  it('is interrupted by cancel', async () => {
    const theatre = await opened({ context }, () => ({ hang: true }))
    const play = theatre.run('Read everything.')
    for (let count = 1; !theatre.requests.some(isSummary); count++) await theatre.arrival(count)
    play.run.cancel()
    expect((await play.run.result).state).toBe('CANCELLED')
  })
})

describe('a request that cannot fit', () => {
  const huge = 'word '.repeat(2_000)

  it.each(['sliding_window', 'compact', 'summarize', 'none'] as const)(
    'ends in ERROR with zero requests made: %s',
    async (strategy) => {
      const theatre = await opened({ context: { window, strategy } })
      const play = theatre.run(huge)
      const result = await play.end(0)
      expect(result).toMatchObject({ state: 'ERROR', reason: 'context_overflow', steps: 0 })
      expect(result.error).toMatchObject({ code: 'context_overflow', recoverable: false })
      expect(result.error?.message).toMatch(
        /needs 20\d\d tokens, more than the 1500 of context\.window: \d+ for instructions, \d+ for tools, 200\d for/,
      )
    },
  )

  it('with strategy none ends the run when the transcript is too long, and keeps all of it', async () => {
    const theatre = await opened({ context: { window, strategy: 'none' } })
    const result = await theatre.run('Read everything.').run.result
    expect(result).toMatchObject({ state: 'ERROR', reason: 'context_overflow' })
    expect(result.steps).toBeGreaterThan(1)
    expect(result.messages.at(-1)).toMatchObject({ role: 'tool' })
    for (const request of theatre.requests) expect(tokensOf(request)).toBeLessThanOrEqual(window)
  })
})

describe('a custom tokenizer', () => {
  it('replaces the default', async () => {
    const counted: string[] = []
    const tokenizer = { count: (words: string) => counted.push(words) && 1 }
    const theatre = await opened({ context: { window }, tokenizer })
    expect((await theatre.run('Read everything.').run.result).state).toBe('COMPLETED')
    expect(counted).toContain('Read everything.')
    expect(theatre.wire(-1)).toHaveLength(2 * steps)
  })

  it('that is broken ends the run with its error instead of a hang', async () => {
    const tokenizer = { count: () => NaN }
    const theatre = await opened({ context: { window }, tokenizer })
    const result = await theatre.run('Read everything.').end(0)
    expect(result).toMatchObject({ state: 'ERROR', error: { code: 'invalid_tokenizer' } })
  })
})
