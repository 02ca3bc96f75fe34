// Plays all pairs of features: node scripts/pairs.mjs [SEED] ['FEATURE × FEATURE']. The seed varies the timing.
// A few processes play a part each, because they also wait. Each one more costs four seconds to warm up.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bundleTests } from './plain.mjs'
import { runSuite } from './suite.mjs'

const parts = 3
const [seed = '1', only] = process.argv.slice(2)
if (only !== undefined) runSuite(['--runInBand', 'test/pairs'], { PAIRS_SEED: seed, PAIRS_ONLY: only })

const folder = mkdtempSync(join(tmpdir(), 'statewright-pairs-'))
const reports = Array.from({ length: parts }, (_, part) => join(folder, `${part}.json`))
const play = await bundleTests('test/pairs/pairs.test.ts')
const codes = await Promise.all(
  reports.map((report, part) => play({ PAIRS: `${part}/${parts}`, PAIRS_REPORT: report, PAIRS_SEED: seed })),
)
if (codes.every((code) => code === 0))
  showReports(reports.map((report) => JSON.parse(readFileSync(report, 'utf8'))))
else process.exitCode = 1
rmSync(folder, { recursive: true })

/** Merges the reports. A feature that took part in no pair is a failure. */
function showReports(seen) {
  const ends = new Map()
  for (const [end, count] of seen.flatMap((one) => one.ends)) ends.set(end, (ends.get(end) ?? 0) + count)
  const { features } = seen[0]
  const sum = (name) => seen.reduce((total, one) => total + one[name], 0)
  console.log(`pairs: ${features.length} features, ${sum('pairs')} pairs`)
  for (const [end, count] of [...ends].sort(([, a], [, b]) => b - a))
    console.log(`  ${`${count}`.padStart(6)}  ${end}`)
  console.log(`  ${sum('stopped')} runs of a host stopped on the way`)
  const missing = features.filter((name) => !seen.some(({ shown }) => shown.includes(name)))
  if (missing.length > 0) console.error(`These features took part in no pair: ${missing.join(', ')}`)
  if (sum('stopped') === 0) console.error('No run of a host was stopped on the way.')
  if (missing.length > 0 || sum('stopped') === 0) process.exitCode = 1
}
