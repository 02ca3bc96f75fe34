import fc from 'fast-check'
import {
  compareReports,
  type EvaluationError,
  type EvaluatedRun,
  type EvaluationReport,
  formatReport,
  formatReportPage,
  parseCases,
  parseReport,
} from '../../../src/testing/index.js'
import {
  bootstrapMean,
  computeWilsonInterval,
  findQuantile,
  scoreCase,
  summarizeCases,
} from '../../../src/testing/evaluate/evaluation-report.js'
import { sampled } from '../../support/extent.js'

const nasty = `<script>alert(1)</script> "quoted" & 'single' \u001B[31mred\u001B[0m </style>`

function createRun(score: number | null, over: Partial<EvaluatedRun> = {}): EvaluatedRun {
  return {
    session: 'e.a.1',
    verdict: score === null ? 'error' : score >= 0.5 ? 'passed' : 'failed',
    score,
    scores: score === null ? {} : { exact: { score, passed: score >= 0.5, why: nasty } },
    ...(score === null && { error: { code: 'scorer_failed', message: nasty, scorer: 'exact' } }),
    state: 'COMPLETED',
    reason: 'end_turn',
    output: nasty,
    steps: 2,
    tokens: { input: 10, output: 5, total: 15 },
    cost: { agent: 0.001, judges: 0 },
    durationMs: 1200,
    guards: [],
    ...over,
  }
}

function createReport(
  scores: Record<string, (number | null)[]>,
  over: Partial<EvaluationReport> = {},
): EvaluationReport {
  const cases = Object.entries(scores).map(([id, values]) => {
    const runs = values.map((score) => createRun(score))
    return { id, tags: { kind: nasty }, input: nasty, expected: nasty, ...scoreCase(runs), runs }
  })
  return {
    statewright: 'evaluation',
    version: 1,
    id: 'e',
    startedAt: 0,
    endedAt: 1000,
    agent: { model: nasty, definition: '' },
    scorers: ['exact'],
    passAt: 0.5,
    repeat: 1,
    seed: 1,
    cases,
    summary: summarizeCases(cases, ['exact'], 1),
    ...over,
  }
}

describe('intervals', () => {
  const scores = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1, maxLength: 40 })

  test('contain the mean and lie within the values, and depend only on the seed', () => {
    fc.assert(
      fc.property(scores, fc.nat(), (values, seed) => {
        const range = bootstrapMean(values, seed)
        expect(range).not.toBeNull()
        const { value, low, high } = range ?? { value: 0, low: 1, high: 0 }
        const slack = 1e-9
        expect(low).toBeLessThanOrEqual(value + slack)
        expect(high).toBeGreaterThanOrEqual(value - slack)
        expect(low).toBeGreaterThanOrEqual(Math.min(...values) - slack)
        expect(high).toBeLessThanOrEqual(Math.max(...values) + slack)
        expect(bootstrapMean(values, seed)).toEqual(range)
      }),
      { numRuns: sampled(60) },
    )
    expect(bootstrapMean([], 1)).toBeNull()
  })

  test('approximate the normal distribution for many values', () => {
    const values = Array.from({ length: 400 }, (_, i) => (i % 2 === 0 ? 0 : 1))
    const { low, high } = bootstrapMean(values, 7) ?? { low: 0, high: 0 }
    // 1.96 standard errors of 0.5 / √400.
    expect(low).toBeCloseTo(0.451, 2)
    expect(high).toBeCloseTo(0.549, 2)
  })

  test('match the literature (Wilson), and are not empty if all cases pass', () => {
    // For 15 successes in 148 trials: Newcombe 1998, table I, method 3 (0.0624 … 0.1605). For 0 in 20: 0 … 0.1611.
    expect(computeWilsonInterval(15 / 148, 148)?.low).toBeCloseTo(0.0624, 4)
    expect(computeWilsonInterval(15 / 148, 148)?.high).toBeCloseTo(0.1605, 4)
    expect(computeWilsonInterval(0, 20)?.low).toBe(0)
    expect(computeWilsonInterval(0, 20)?.high).toBeCloseTo(0.1611, 4)
    expect(computeWilsonInterval(1, 0)).toBeNull()
  })

  test('of a quantile lie between its neighbors', () => {
    expect(findQuantile([1, 2, 3, 4], 0.5)).toBe(2.5)
    expect(findQuantile([1], 0.95)).toBe(1)
    expect(findQuantile([], 0.5)).toBeNaN()
  })
})

describe('a comparison', () => {
  test('pairs each case with itself, and lists those that changed', () => {
    const base = createReport({ a: [1], b: [0], c: [0.5], gone: [1], broken: [null] })
    const now = createReport({ a: [0.25], b: [1], c: [0.5], fresh: [1], broken: [1] })
    const compared = compareReports(now, base)
    expect(compared).toMatchObject({ pairs: 3, added: ['fresh', 'broken'], missing: ['gone'] })
    expect(compared.score?.value).toBeCloseTo(0.25 / 3)
    expect(compared.regressions).toEqual([{ id: 'a', before: 1, now: 0.25, difference: -0.75 }])
    expect(compared.improvements).toEqual([{ id: 'b', before: 0, now: 1, difference: 1 }])
  })

  test('of a report with itself is empty', () => {
    fc.assert(
      fc.property(
        fc.dictionary(
          fc.string(),
          fc.array(fc.option(fc.double({ min: 0, max: 1, noNaN: true })), { minLength: 1, maxLength: 3 }),
          {
            maxKeys: 6,
            noNullPrototype: true,
          },
        ),
        (scores) => {
          const report = createReport(scores)
          const { score, regressions, improvements, added, missing } = compareReports(report, report)
          expect([regressions, improvements, added, missing]).toEqual([[], [], [], []])
          expect(score ?? { value: 0, low: 0, high: 0 }).toEqual({ value: 0, low: 0, high: 0 })
        },
      ),
      { numRuns: sampled(30) },
    )
  })

  test('accepts only reports', () => {
    const report = createReport({ a: [1] })
    expect(parseReport(JSON.stringify(report))).toEqual(report)
    for (const text of [
      '',
      '{',
      'null',
      '[]',
      '{}',
      JSON.stringify({ ...report, version: 2 }),
      JSON.stringify({ ...report, cases: [1] }),
    ])
      expect(() => parseReport(text, 'base.json')).toThrow(/base\.json is not an evaluation report: it/)
  })
})

describe('a page', () => {
  const report = createReport({ a: [1], [nasty]: [0], broken: [null] }, { id: 'e', interrupted: true })
  const page = formatReportPage(report, compareReports(report, createReport({ a: [0], [nasty]: [1] })))

  test('contains nothing that runs or loads, and a policy that forbids it', () => {
    expect(page).toMatch(
      /<meta http-equiv="Content-Security-Policy" content="default-src &#39;none&#39;; style-src &#39;sha256-/,
    )
    expect(page).not.toMatch(/<script|javascript:|\son\w+=|\sstyle=|https?:|url\(|@import/i)
  })

  test('shows texts unchanged, without their markup or control characters', () => {
    expect(page).toContain('&lt;script&gt;alert(1)&lt;/script&gt; &quot;quoted&quot; &amp; &#39;single&#39;')
    expect(page).not.toContain('\u001B')
    expect(page.match(/<\/style>/g)).toHaveLength(1)
  })

  test('escapes every text, at any position', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (id, output) => {
        const marked = `<i>${id}</i>`
        const run = createRun(0, {
          output: `<i>${output}</i>`,
          session: marked,
          guards: [{ guard: 'cycle', action: 'nudge', message: marked }],
        })
        const one = {
          id: marked,
          tags: { [marked]: marked },
          input: marked,
          expected: marked,
          ...scoreCase([run]),
          runs: [run],
        }
        const shown = formatReportPage({
          ...report,
          id: marked,
          cases: [one],
          summary: summarizeCases([one], ['exact'], 1),
        })
        expect(shown).not.toContain('<i>')
      }),
      { numRuns: sampled(40) },
    )
  })
})

describe('a table', () => {
  test('fits its width, and shows no control characters', () => {
    const report = createReport({ a: [1], [nasty]: [0], broken: [null] })
    for (const width of [60, 80, 120]) {
      const table = formatReport(report, compareReports(report, createReport({ a: [0], [nasty]: [1] })), {
        width,
      })
      const lines = table.split('\n').filter((line) => !line.startsWith('Look at one'))
      expect(Math.max(...lines.map((line) => Array.from(line).length))).toBeLessThanOrEqual(width)
      expect(table).not.toContain('\u001B')
    }
  })

  test('names the most severe failures first', () => {
    const table = formatReport(createReport({ good: [1], low: [0.25], lower: [0], broken: [null] }), null, {
      most: 2,
    })
    expect(table.indexOf('error  ')).toBeLessThan(table.indexOf('failed  e.a.1'))
    expect(table).toMatch(/… and 1 more/)
  })
})

describe('a file of cases', () => {
  test('is read line by line, with any line ends and empty lines', () => {
    const lines = [
      '\uFEFF{"id":"a","input":"x"}',
      '',
      '  ',
      '{"id":"b","input":[{"role":"user","content":"y"}],"expected":1,"tags":{"k":"v"}}',
    ]
    for (const end of ['\n', '\r\n'])
      expect(parseCases(lines.join(end)).map(({ id }) => id)).toEqual(['a', 'b'])
  })

  test.each([
    ['{"input":"x"}', 'line 2 has no id'],
    ['{"id":"","input":"x"}', 'line 2 has an id that is not a string'],
    ['{"id":5,"input":"x"}', 'line 2 has an id that is not a string'],
    ['{"id":"a","input":"x"}', 'line 2 has the id "a" of line 1'],
    ['{"id":"b"}', 'line 2 ("b") has no input'],
    ['{"id":"b","input":""}', 'line 2 ("b") has an invalid input'],
    ['{"id":"b","input":7}', 'line 2 ("b") has an invalid input'],
    ['{"id":"b","input":"x","expect":"y"}', `line 2 ("b") has the unknown key 'expect'`],
    ['{"id":"b","input":"x","tags":["y"]}', 'line 2 ("b"): tags must be an object'],
    ['[]', 'line 2 is not a JSON object'],
    ['{"id":', 'line 2 is not JSON'],
  ])('that has %s is refused: %s', (line, says) => {
    const read = () => parseCases(`{"id":"a","input":"x"}\n${line}\n{"id":"z","input":"x"}`, 'cases.jsonl')
    expect(read).toThrow(says)
    expect(read).toThrow(/^cases\.jsonl: .* A case is \{ "id", "input", "expected"\?, "tags"\? \}\.$/s)
  })

  test('names the position of every damaged line', () => {
    fc.assert(
      fc.property(fc.array(fc.boolean(), { minLength: 1, maxLength: 20 }), (good) => {
        const text = good.map((isGood, i) => (isGood ? `{"id":"c${i}","input":"x"}` : '{')).join('\n')
        const wrong = good.flatMap((isGood, i) => (isGood ? [] : [i + 1]))
        const found = (() => {
          try {
            return { cases: parseCases(text).length, lines: [] }
          } catch (error) {
            return { cases: 0, lines: (error as EvaluationError).problems.map(({ line }) => line) }
          }
        })()
        expect(found).toEqual({ cases: wrong.length === 0 ? good.length : 0, lines: wrong })
      }),
      { numRuns: sampled(50) },
    )
  })
})
