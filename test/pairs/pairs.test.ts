import type { AgentEvent } from '../../src/index.js'
import { hosted } from '../chaos/hosted.js'
import { cellOf, pairsOf, type Place, places } from './cell.js'
import { type Feature, type FeatureName, featureNames, features } from './features.js'
import { playCell } from './play.js'

/**
 * `npm run test:pairs` plays every pair; here is a sample. `PAIRS_SEED` draws other schedules and other places, and
 * `PAIRS_ONLY='approval × a fork'` plays one cell.
 */
const isWhole = process.env['PAIRS'] === 'whole'
const seed = Number(process.env['PAIRS_SEED'] ?? 1)
const only = process.env['PAIRS_ONLY']?.split(' × ')

const { host, unhandled } = hosted()

test(
  `each two features keep the rules together (seed ${seed})`,
  async () => {
    const due = duePairs()
    const ends = new Map<string, number>()
    const shown = new Set<FeatureName>()
    const broken: string[] = []
    for (const [i, pair] of due.entries()) {
      const place = places[(i + seed) % places.length] as Place
      const { broken: rules, ended, events } = await playCell(cellOf(pair, place, seed * 100_003 + i), host())
      for (const name of pair) if (events.some((event) => isShownBy(name, event))) shown.add(name)
      ends.set(ended, (ends.get(ended) ?? 0) + 1)
      const found = [...rules, ...unhandled()]
      broken.push(...found.map((rule) => `${pair.join(' × ')} (${place}): ${rule}`))
    }
    console.log(summary(due.length, ends))
    expect(broken).toEqual([])
    // A feature that never takes part would pass everything.
    if (isWhole) expect(featureNames.filter((name) => !shown.has(name))).toEqual([])
  },
  isWhole ? 1_200_000 : 60_000,
)

/** All of them, or some in which each feature meets two others. */
function duePairs(): [FeatureName, FeatureName][] {
  const all = pairsOf(featureNames)
  if (isWhole) return all
  if (only) return all.filter((pair) => only.every((name) => pair.some((one) => one === name)))
  const step = 1 + ((7 * seed) % (featureNames.length - 1))
  const sampled = new Set(
    featureNames.map((name, i) =>
      keyOf([name, featureNames[(i + step) % featureNames.length] as FeatureName]),
    ),
  )
  return all.filter((pair) => sampled.has(keyOf(pair)))
}

/** The same for both orders. */
function keyOf([a, b]: readonly [FeatureName, FeatureName]): string {
  return a < b ? `${a} × ${b}` : `${b} × ${a}`
}

function isShownBy(name: FeatureName, event: AgentEvent): boolean {
  const { shows } = features[name] as Feature
  return shows === undefined || shows(event)
}

function summary(played: number, ends: ReadonlyMap<string, number>): string {
  const lines = [...ends]
    .sort(([, a], [, b]) => b - a)
    .map(([ended, count]) => `  ${`${count}`.padStart(6)}  ${ended}`)
  const all = pairsOf(featureNames).length
  return [`pairs: ${featureNames.length} features, ${played} of ${all} pairs`, ...lines].join('\n')
}
