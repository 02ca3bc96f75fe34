// The cost of the guards per step: five calls of 2 KB each, with results of 2 KB. Also measures how the comparison of results scales
// with adversarial texts: twice the text takes twice the time. Usage: node bench/guards/cost.mjs
//
// All times are CPU times, so waiting for the processor does not count. The minimum of many rounds excludes other load on the
// machine.
import { build } from 'esbuild'

const entry = `
export { createCallsFact, createResultsFact } from './guards/facts.js'
export { digestOutcome } from './guards/lib/outcome-digest.js'
export { collectFindings, getInitialGuardrails, observeAll } from './guards/state.js'
export { toCallFact, toResultFact } from './machines/agent/call-facts.js'
export { defaultConfig, enabledGuards } from './src/core/config/defaults.js'`

// The package does not export these functions, so they are bundled from the source.
const { outputFiles } = await build({
  stdin: { contents: entry, resolveDir: new URL('../..', import.meta.url).pathname },
  bundle: true,
  write: false,
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
})
const parts = await import(
  `data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString('base64')}`
)
const {
  createCallsFact,
  createResultsFact,
  digestOutcome,
  collectFindings,
  getInitialGuardrails,
  observeAll,
} = parts
const { toCallFact, toResultFact, defaultConfig, enabledGuards } = parts

const tools = { read: { readOnly: true, polling: false } }
const words = 'The report of line 12 says that 3 of 40 files were read at 10:05:07 by the tool. '
  .repeat(30)
  .slice(0, 2_000)

/** Flat strings, as they arrive from the wire and from tools, built before the measurement. */
const inOnePiece = (text) => Buffer.from(text).toString('latin1')
const stepsMade = 500
const steps = Array.from({ length: stepsMade }, (_, n) =>
  [0, 1, 2, 3, 4].map((i) => ({
    call: {
      name: 'read',
      arguments: inOnePiece(JSON.stringify({ path: `notes/${n}.${i}`, note: 'x'.repeat(2_000) })),
    },
    result: { status: 'ok', content: inOnePiece(`${n} ${i} ${words}`), durationMs: 5 },
  })),
)

function step(config, state, n) {
  const batch = steps[n % stepsMade]
  const facts = batch.map(({ call }) => toCallFact(tools, call, config))
  const observed = observeAll(state, createCallsFact(facts, config), config)
  collectFindings(observed, config)
  const results = batch.map(({ call, result }, i) =>
    toResultFact(tools, { ...call, fact: facts[i] }, result, config),
  )
  const next = observeAll(observed, createResultsFact(results, config, n), config)
  collectFindings(next, config)
  return next
}

/** CPU microseconds per unit of work, as the minimum of many short rounds. */
function least(work, times) {
  for (let n = 0; n < stepsMade * 4; n++) work(n)
  let best = Infinity
  for (let round = 0; round < 40; round++) {
    const begun = process.cpuUsage()
    for (let n = 0; n < times; n++) work(n)
    const { user, system } = process.cpuUsage(begun)
    best = Math.min(best, (user + system) / times)
  }
  return best
}

const { guardrails } = defaultConfig
const named = { ...guardrails, ...enabledGuards, progress: null }
for (const [name, config] of Object.entries({
  'the default policy': guardrails,
  'the named guards': named,
})) {
  let state = getInitialGuardrails()
  const cost = least((n) => (state = step(config, state, n)), stepsMade)
  console.log(`${name}: ${cost.toFixed(1)} µs a step`)
}

for (const piece of [
  '1:',
  '12:30',
  '1.',
  'request id=',
  'pid ',
  'Jan ',
  'deadbeef-',
  '1m',
  '2026-01-',
  '/tmp/',
  'a-',
]) {
  const [half, whole] = [8_000, 16_000].map((length) => {
    const text = piece.repeat(length / piece.length)
    return least(() => digestOutcome(text), 50)
  })
  console.log(
    `${JSON.stringify(piece)}: ${half.toFixed(0)} → ${whole.toFixed(0)} µs (× ${(whole / half).toFixed(1)})`,
  )
}
