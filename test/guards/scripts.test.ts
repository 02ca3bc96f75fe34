import * as fc from 'fast-check'
import { runsAll } from '../support/extent.js'
import { replaySteps, type RecordedStep, type RecordedTools } from '../../src/testing/replay-guards.js'
// @ts-expect-error -- the file has no types
import * as scripts from '../../bench/guards/scripts.mjs'

interface Script {
  name: string
  tools: RecordedTools
  step: (n: number) => RecordedStep['calls']
  steps: (RecordedStep | RecordedStep['calls'])[]
}

const { loops, undecided, honest } = scripts as {
  [Kind in 'loops' | 'undecided' | 'honest']: Script[]
}

test.each(loops)('a loop is stopped: $name', ({ step, tools }) => {
  const steps = Array.from({ length: 60 }, (_, n) => ({ calls: step(n) }))
  const { halt, findings, calls } = replaySteps(steps, {}, tools)
  expect(halt).not.toBeNull()
  expect(findings.some(({ action }) => action === 'nudge')).toBe(true)
  expect(calls.executed).toBeLessThanOrEqual(32)
})

test.each(undecided)('a loop that looks like work is never halted: $name', ({ step, tools }) => {
  const steps = Array.from({ length: runsAll ? 400 : 150 }, (_, n) => ({ calls: step(n) }))
  expect(replaySteps(steps, {}, tools).halt).toBeNull()
})

describe('a call with new arguments that succeeds', () => {
  const result = fc.oneof(
    fc.constantFrom('ok', '[]', 'running', 'x'.repeat(600), '1 failed'),
    fc.string({ maxLength: 20 }),
  )

  test('never leads to a halt or a refusal, with any result', () => {
    fc.assert(
      fc.property(fc.array(result, { minLength: 1, maxLength: 3 }), fc.boolean(), (results, isNumber) => {
        const steps = Array.from({ length: 150 }, (_, n) => ({
          calls: [
            {
              name: 'work',
              arguments: JSON.stringify({ at: isNumber ? n : n.toString(36).padStart(3, 'k') }),
              result: results[n % results.length] ?? '',
            },
          ],
        }))
        const { halt, calls } = replaySteps(steps)
        expect([halt, calls.refused]).toEqual([null, 0])
      }),
      { numRuns: 15 },
    )
  })
})

test.each(honest)('honest work is neither stopped nor refused: $name', ({ steps, tools }) => {
  const recorded = steps.map((step) => ('calls' in step ? step : { calls: step }))
  const { halt, findings, calls } = replaySteps(recorded, {}, tools)
  expect(halt).toBeNull()
  expect(findings.filter(({ action }) => action === 'block')).toEqual([])
  expect(calls.refused).toBe(0)
})
