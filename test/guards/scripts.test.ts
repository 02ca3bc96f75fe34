import { replaySteps, type RecordedStep, type RecordedTools } from '../../src/testing/replay-guards.js'

interface Script {
  name: string
  tools: RecordedTools
  step: (n: number) => RecordedStep['calls']
  steps: (RecordedStep | RecordedStep['calls'])[]
}

const file = new URL('../../bench/guards/scripts.mjs', import.meta.url).href
const { loops, honest } = (await import(file)) as { loops: Script[]; honest: Script[] }

test.each(loops)('a loop is stopped: $name', ({ step, tools }) => {
  const steps = Array.from({ length: 60 }, (_, n) => ({ calls: step(n) }))
  const { halt, findings, calls } = replaySteps(steps, {}, tools)
  expect(halt).not.toBeNull()
  expect(findings.some(({ action }) => action === 'nudge')).toBe(true)
  expect(calls.executed).toBeLessThanOrEqual(32)
})

test.each(honest)('honest work is neither stopped nor refused: $name', ({ steps, tools }) => {
  const recorded = steps.map((step) => ('calls' in step ? step : { calls: step }))
  const { halt, findings, calls } = replaySteps(recorded, {}, tools)
  expect(halt).toBeNull()
  expect(findings.filter(({ action }) => action === 'block')).toEqual([])
  expect(calls.refused).toBe(0)
})
