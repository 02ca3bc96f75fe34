// What the guards cost a step: five calls of 2 KB each, and results of 2 KB. Also how the comparison of results grows
// with texts that are made to slow it down: twice the text, twice the time. Usage: node bench/guards/cost.mjs
import { build } from 'esbuild'

const entry = `
export { callsFact, resultsFact } from './guards/facts.js'
export { outcomeDigest } from './guards/outcome-digest.js'
export { findings, initialGuardrails, observeAll } from './guards/state.js'
export { callFactOf, resultFactOf } from './machines/agent/call-facts.js'
export { defaultConfig, guardsOffByDefault } from './src/core/config/defaults.js'`

// The package does not export them.
const { outputFiles } = await build({
  stdin: { contents: entry, resolveDir: new URL('../..', import.meta.url).pathname },
  bundle: true,
  write: false,
  format: 'esm',
  platform: 'node',
})
const parts = await import(
  `data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString('base64')}`
)
const { callsFact, resultsFact, outcomeDigest, findings, initialGuardrails, observeAll } = parts
const { callFactOf, resultFactOf, defaultConfig, guardsOffByDefault } = parts

const tools = { read: { readOnly: true, polling: false } }
const words = 'The report of line 12 says that 3 of 40 files were read at 10:05:07 by the tool. '
  .repeat(30)
  .slice(0, 2_000)

function step(config, state, n) {
  const calls = [0, 1, 2, 3, 4].map((i) => ({
    name: 'read',
    arguments: JSON.stringify({ path: `notes/${n}.${i}`, note: 'x'.repeat(2_000) }),
  }))
  const facts = calls.map((call) => callFactOf(tools, call))
  const asked = observeAll(state, callsFact(facts), config)
  findings(asked, config)
  const results = calls.map((call, i) => {
    const result = { status: 'ok', content: `${n} ${i} ${words}`, durationMs: 5 }
    return resultFactOf(tools, { ...call, fact: facts[i] }, result, config)
  })
  const next = observeAll(asked, resultsFact(results, n), config)
  findings(next, config)
  return next
}

/** The best of several rounds, in microseconds: others share the machine. */
function best(work, times) {
  for (let n = 0; n < times; n++) work(n)
  let least = Infinity
  for (let round = 0; round < 15; round++) {
    const begun = performance.now()
    for (let n = 0; n < times; n++) work(n)
    least = Math.min(least, ((performance.now() - begun) * 1000) / times)
  }
  return least
}

const { guardrails } = defaultConfig
const named = { ...guardrails, ...guardsOffByDefault, progress: null }
for (const [name, config] of Object.entries({
  'the default policy': guardrails,
  'the named guards': named,
})) {
  let state = initialGuardrails()
  const cost = best((n) => (state = step(config, state, n)), 400)
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
    return best(() => outcomeDigest(text), 10)
  })
  console.log(
    `${JSON.stringify(piece)}: ${half.toFixed(0)} → ${whole.toFixed(0)} µs (× ${(whole / half).toFixed(1)})`,
  )
}
