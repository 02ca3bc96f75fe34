import { writeFileSync } from 'node:fs'
import type { AgentEvent } from '../../src/index.js'
import { hosted } from '../chaos/hosted.js'
import { unlike } from '../chaos/play.js'
import { type Cell, cellOf, pairsOf, type Place, places } from './cell.js'
import { type Feature, type FeatureName, featureNames, features } from './features.js'
import { type Outcome, playCell } from './play.js'

/**
 * `npm run suite -- pairs` plays every pair, split over several processes (`PAIRS='1/3'`), which write their
 * results to the file `PAIRS_REPORT`. This test plays a sample. `PAIRS_SEED` draws other schedules and
 * places, and `PAIRS_ONLY='approval × a fork'` plays one cell.
 */
const [part, parts] = process.env['PAIRS']?.split('/').map(Number) ?? []
const seed = Number(process.env['PAIRS_SEED'] ?? 1)
const only = process.env['PAIRS_ONLY']?.split(' × ')

const { host, unhandled } = hosted()

test(
  `each pair of features obeys the rules (seed ${seed})`,
  async () => {
    const due = duePairs()
    const ends = new Map<string, number>()
    const shown = new Set<FeatureName>()
    const broken: string[] = []
    let stopped = 0
    for (const [i, pair] of due) {
      const place = places[(i + seed) % places.length] as Place
      const cell = cellOf(pair, place, seed * 100_003 + i)
      const played = await playCell(cell, host())
      const { broken: rules, ended, events } = played
      stopped += played.stopped
      for (const name of pair) if (events.some((event) => isShownBy(name, event))) shown.add(name)
      ends.set(ended, (ends.get(ended) ?? 0) + 1)
      const alike = cell.driven?.stops.length === 0 && !cell.caller ? await unlikeUndriven(cell, played) : []
      const found = [...rules, ...alike, ...unhandled()]
      broken.push(...found.map((rule) => `${pair.join(' × ')} (${place}): ${rule}`))
    }
    const report = process.env['PAIRS_REPORT']
    const saw = { pairs: due.length, ends: [...ends], shown: [...shown], stopped, features: featureNames }
    if (report) writeFileSync(report, JSON.stringify(saw))
    expect(broken).toEqual([])
  },
  parts || only ? 3_600_000 : 300_000,
)

/**
 * A driven run and the same run by its handle have the same conversation, unless another process intervenes.
 */
async function unlikeUndriven(cell: Cell, driven: Outcome): Promise<string[]> {
  const { moments } = cell.plan
  const paused = driven.events.some((event) => event.type === 'state_changed' && event.to === 'PAUSED')
  if (moments.length > 0 || cell.messages.length > 0 || paused) return []
  const { conversation, ended, broken } = await playCell({ ...cell, driven: null }, host())
  // A cancelled run is not compared, because the two runs reach the cancel limit at different points.
  if ([ended, driven.ended].some((end) => end.startsWith('CANCELLED'))) return broken
  return [...broken, ...unlike('driven it', [driven.ended, driven.conversation], [ended, conversation])]
}

/**
 * All pairs, or a sample: every third feature of one half, each with one of the other half. Each pair has a
 * number that seeds its cell.
 */
function duePairs(): [number, [FeatureName, FeatureName]][] {
  const all = [...pairsOf(featureNames).entries()]
  if (parts) return all.filter(([i]) => i % parts === part)
  if (only) return all.filter(([, pair]) => only.every((name) => pair.some((one) => one === name)))
  const step = 1 + ((7 * seed) % (featureNames.length - 1))
  const half = Math.ceil(featureNames.length / 2)
  const sampled = new Set(
    featureNames
      .slice(0, half)
      .filter((_, i) => (i + seed) % 3 === 0)
      .map((name, i) =>
        keyOf([name, featureNames[half + ((i + step) % (featureNames.length - half))] as FeatureName]),
      ),
  )
  return all.filter(([, pair]) => sampled.has(keyOf(pair)))
}

/** The same for both orders. */
function keyOf([a, b]: readonly [FeatureName, FeatureName]): string {
  return a < b ? `${a} × ${b}` : `${b} × ${a}`
}

function isShownBy(name: FeatureName, event: AgentEvent): boolean {
  const { shows } = features[name] as Feature
  return shows === undefined || shows(event)
}
