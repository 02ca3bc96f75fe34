import { formatMoney } from '../../src/core/format/format-words.js'
import fc from 'fast-check'
import { memoryStore } from '../../src/index.js'
import {
  createStepFilter,
  listRunSteps,
  measureUnion,
  mergeSteps,
  shareTime,
  toPercents,
  type RunStep,
} from '../../src/studio/run-steps.js'
import type { Bar, RecordRow, SessionView } from '../../src/studio/protocol.js'
import { paths } from '../../src/studio/routes.js'
import { toPlainLine } from '../../src/studio/verdict.js'
import { addCosts } from '../../src/studio/costs.js'
import { eventful, playLong, rehearsedAgent } from './rehearsed.js'
import { visit } from './visitor.js'

const circling = [{ toolCalls: [{ name: 'poll_nothing', arguments: {} }] }]

async function viewOf(
  turns: Parameters<typeof rehearsedAgent>[1],
  options: Parameters<typeof rehearsedAgent>[2] = {},
): Promise<SessionView> {
  const store = memoryStore()
  const { agent, close } = await rehearsedAgent(store, turns, options)
  await agent.run('Pay the invoice.', { session: 's' }).result
  const view = await (await visit({ store })).get<SessionView>(paths.session('s'))
  await close()
  return view
}

describe('the steps of a run', () => {
  it('have their attempts, calls, tokens and costs, in sequence', async () => {
    const view = await viewOf(eventful)
    const steps = listRunSteps(view)
    expect(
      steps.map(({ step, calls, open, flags, hasFailed, tokens }) => ({
        step,
        calls: calls.map(({ name, status }) => `${name} ${status}`),
        open,
        flags,
        hasFailed,
        isPaid: tokens > 0,
      })),
    ).toEqual([
      { step: 1, calls: ['look_up ok'], open: [], flags: ['retry'], hasFailed: false, isPaid: true },
      { step: 2, calls: ['research ok'], open: [], flags: [], hasFailed: false, isPaid: true },
      { step: 3, calls: [], open: ['pay (approval)'], flags: ['wait'], hasFailed: false, isPaid: true },
    ])
    expect(steps[1]?.children.map(({ label }) => label)).toEqual(['research'])
    expect(steps.flatMap(({ from, to }) => [from, to])).toEqual([0, 5, 6, 7, 8, 8])
    // Each step contains the results of its calls. The last step is partial.
    expect(steps.map(({ place }) => place)).toEqual([5, 7, 8])
    const last = view.rows.at(-1)
    expect(steps.reduce((sum, { tokens }) => sum + tokens, 0)).toBe(last?.tokens)
    expect(addCosts(steps.map(({ cost }) => cost)).usd).toBeCloseTo(view.verdict.cost.usd, 12)
    const { total, ...parts } = shareTime(view)
    expect(Math.min(...Object.values(parts))).toBeGreaterThanOrEqual(0)
    expect(Math.max(...Object.values(parts))).toBeLessThanOrEqual(total)
    expect(parts.tools).toBe(measureUnion(view.bars, ['model', 'tools'], Infinity) - parts.model)
    expect(parts['sub-agents']).toBeGreaterThan(0)
  })

  it('share the time of the session: each moment counts once, and the shares add up to 100 %', () => {
    const time = fc.nat({ max: 1000 })
    const bar = fc.record({
      lane: fc.constantFrom('model', 'tools', 'children', 'waits', 'shields'),
      from: time,
      to: fc.option(time),
    })
    const rows = fc.tuple(time, time).map((times) => times.toSorted((a, b) => a - b).map((at) => ({ at })))
    fc.assert(
      fc.property(fc.array(bar, { maxLength: 12 }), rows, (bars, at) => {
        const shares = shareTime({ rows: at, bars } as unknown as Parameters<typeof shareTime>[0])
        const { total, ...parts } = shares
        const sum = (values: number[]): number => values.reduce((all, one) => all + one, 0)
        expect(sum(Object.values(parts))).toBe(total)
        const percents = Object.values(toPercents(shares))
        expect(Math.min(...percents)).toBeGreaterThanOrEqual(0)
        expect(sum(percents)).toBe(total > 0 ? 100 : 0)
      }),
    )
  })

  it('are shown at their last result, otherwise at the answer of the model, and in progress at their current record', () => {
    const row = (seq: number, label: string, step: number, calls: string[] = []): RecordRow =>
      ({
        seq,
        label,
        step,
        run: 1,
        at: seq,
        tokens: 0,
        paid: 0,
        flags: [],
        to: [],
        state: 'RUNNING',
        calls: calls.map((name) => ({ id: name, name, status: 'ok', isReadOnly: true })),
      }) as unknown as RecordRow
    const batch = [
      row(1, 'run 1', 1),
      row(2, 'answer: 2 calls', 1),
      row(3, 'first ok', 1, ['first']),
      row(4, 'second ok', 2, ['second']),
    ]
    const places = (rows: RecordRow[], bars: Partial<Bar>[] = []): number[] =>
      listRunSteps({ rows, bars: bars as Bar[] }).map(({ place }) => place)
    expect(places(batch)).toEqual([3])
    expect(places([...batch, row(5, 'memory', 2), row(6, 'answer', 2), row(7, 'saved', 2)])).toEqual([3, 5])
    const open = {
      id: 1,
      lane: 'tools',
      label: 'second',
      from: 2,
      to: null,
      fromSeq: 2,
      toSeq: null,
    } as const
    expect(places([...batch.slice(0, 3), row(4, 'progress', 1)], [open])).toEqual([3])
  })

  it('are merged if many look alike, unless they are opened, and none is lost', async () => {
    const store = memoryStore()
    await playLong(store, 's', 40)
    const view = await (await visit({ store })).get<SessionView>(paths.session('s'))
    const steps = listRunSteps(view)
    expect(steps).toHaveLength(41)
    const lines = mergeSteps(steps, new Set())
    expect(lines.map(({ length }) => length)).toEqual([40, 1])
    expect(mergeSteps(steps, new Set(['1.1']))).toHaveLength(41)
    expect(lines.flat()).toEqual(steps)
  })

  it('are found by words, tools, states, errors, times and costs', async () => {
    const steps = listRunSteps(await viewOf(circling))
    const find = (words: string): RunStep[] => steps.filter(createStepFilter(words))
    expect(find('tool:poll')).toHaveLength(steps.length)
    expect(find('tool:pay')).toEqual([])
    expect(find('state:waiting_for_tool').length).toBeGreaterThan(0)
    expect(find('halt')).toHaveLength(1)
    expect(find('block tool:poll').length).toBeGreaterThan(5)
    expect(find('error')).toEqual([])
    expect(find('>1h')).toEqual([])
    expect(find('<1h')).toHaveLength(steps.length)
    expect(find('cost>0')).toHaveLength(steps.length)
    expect(find('cost>$1')).toEqual([])
    expect(find('tokens>=1')).toHaveLength(steps.length)
  })

  it('accept any words as a filter, and more words find no more steps', async () => {
    const steps = listRunSteps(await viewOf(eventful))
    const word = fc.oneof(
      fc.string(),
      fc.constantFrom('tool:', 'state:', '>', '<1', '>0ms', 'cost>', 'cost<0.1', 'error', 'answer'),
    )
    fc.assert(
      fc.property(fc.array(word, { maxLength: 4 }), word, (words, other) => {
        const found = steps.filter(createStepFilter(words.join(' ')))
        const fewer = steps.filter(createStepFilter([...words, other].join(' ')))
        expect(fewer.filter((step) => !found.includes(step))).toEqual([])
      }),
    )
  })
})

it.each([
  [0, '$0.00'],
  [0.00001, '< $0.0001'],
  [0.0004, '$0.0004'],
])('a cost of %d USD is %s, and only zero is shown as none', (cost, shown) => {
  expect(formatMoney(cost)).toBe(shown)
})

describe('the verdict', () => {
  it('names the reason of a guard and the key that allows more, at the record of the halt', async () => {
    const { verdict, rows } = await viewOf(circling)
    expect(verdict).toMatchObject({ state: 'PAUSED', reason: 'no_progress', cost: { isWhole: true } })
    expect(verdict.text).toMatch(
      /^Stopped by progress\.stale\. .*poll_nothing .*guardrails\.progress\.stale\.haltAt/,
    )
    const ran = rows.flatMap(({ calls }) => calls).filter(({ status }) => status === 'ok').length
    const refused = rows.flatMap(({ calls }) => calls).filter(({ status }) => status === 'blocked').length
    expect(verdict.text).toContain(`${ran} calls to poll_nothing ran and ${refused} were refused.`)
    expect(rows[verdict.seq - 1]?.flags).toContain('halt')
  })

  it('names the pending request of a run, and states whether an answer ended it', async () => {
    expect((await viewOf(eventful)).verdict.text).toBe('Waiting for you to approve pay.')
    const { verdict, rows } = await viewOf([{ text: 'Done.' }])
    expect(verdict.text).toBe('The model ended its turn with an answer.')
    expect(verdict.seq).toBe(rows.length)
  })

  it('has the first line of the answer only if the run completed', async () => {
    const key = `sk-proj-${'a1B2c3D4'.repeat(5)}`
    const text = `## The sales\n\nOctober brought **48,210 EUR**, see \`${key}\`\n\nThe details follow.`
    expect((await viewOf([{ text }])).verdict.answer).toBe('October brought 48,210 EUR, see [redacted]')
    expect((await viewOf(eventful)).verdict.answer).toBe('')
    expect((await viewOf(circling, { limits: { maxSteps: 2 } })).verdict.answer).toBe('')
  })

  it.each([
    ['', ''],
    ['---\n\n- [Lisbon](https://example.com/a) *then* `home`\n- Porto', 'Lisbon then home'],
    ['# Done', 'Done'],
    ['\n{\n  "sum": 48210\n}', '{ "sum": 48210 }'],
    ['> \u202eevil\u001b[31m words', 'evil[31m words'],
    ['[1, 2]', '[1, 2]'],
  ])('has for the answer %j the line %j', (text, line) => {
    expect(toPlainLine(text)).toBe(line)
  })

  it('has one short line for any answer', () => {
    const text = fc.string({
      unit: fc.constantFrom('*', '`', '[', '](', ')', '{', '\n', '\r', '\u202e', 'ä', ' ', '# '),
    })
    fc.assert(
      fc.property(text, (words) => {
        const line = toPlainLine(words)
        expect(line).not.toMatch(/[\n\r\u202e]/)
        expect(Array.from(line).length).toBeLessThanOrEqual(200)
      }),
    )
    expect(toPlainLine('ä'.repeat(900))).toHaveLength(200)
  })

  it('names the limit that ended the run', async () => {
    const { verdict } = await viewOf(circling, { limits: { maxSteps: 2 } })
    expect(verdict).toMatchObject({ state: 'MAX_STEPS', reason: 'max_steps' })
    expect(verdict.text).toContain('maxSteps')
  })

  it.each([
    [1, 'failed: '],
    [3, 'failed 3 times, most recently with this error: '],
  ])('states that the request failed, after %d attempts', async (maxAttempts, words) => {
    const turns = [{ status: 503, error: { message: 'Overloaded.' } }]
    const { verdict } = await viewOf(turns, { retry: { maxAttempts, baseDelayMs: 1 } })
    expect(verdict).toMatchObject({ state: 'ERROR', reason: 'provider_error' })
    expect(verdict.text).toMatch(new RegExp(`^The request to the model ${words}.*Overloaded`))
  })

  it('names the repeated call of a run that ends at its step limit', async () => {
    const { verdict, rows } = await viewOf(circling, { limits: { maxSteps: 8 } })
    expect(verdict).toMatchObject({ state: 'MAX_STEPS', reason: 'max_steps' })
    expect(verdict.text).toMatch(
      /^The run repeated itself\. \d+ calls to poll_nothing ran and \d+ (?:was|were) refused\. All 8 steps of this run are used\.$/,
    )
    expect(rows.find(({ seq }) => seq === verdict.seq)?.flags).toContain('block')
  })

  it('states the known part of a cost if the price of another part is unknown', async () => {
    const { verdict, rows } = await viewOf(eventful)
    // The sub-agent has no prices.
    expect(rows.at(-1)?.cost).toBeNull()
    expect(verdict.cost.isWhole).toBe(false)
    expect(verdict.cost.usd).toBeGreaterThan(0)
  })
})
