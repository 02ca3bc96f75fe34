import * as fc from 'fast-check'
import { anyPlan, type Plan } from './plan.js'
import { play } from './play.js'
import { hosted } from './hosted.js'
import { Tally } from './tally.js'
import { sampled } from '../support/extent.js'

/** `npm run suite -- chaos` plays thousands. This test plays a sample. */
const { CHAOS_RUNS: runs = String(sampled(20)), CHAOS_SEED: seed = '1', CHAOS_PATH: path = '' } = process.env
const numRuns = Number(runs)
const isWhole = numRuns >= 1_000
/** After this time, the full suite stops once it has met every behavior, so a slow machine plays fewer plans. */
const longest = 120_000

const { host, unhandled } = hosted()

test(
  `${isWhole ? 'up to ' : ''}${numRuns} runs with injected faults keep every promise (seed ${seed})`,
  async () => {
    const tally = new Tally()
    let last: Promise<void> = Promise.resolve()
    const startedAt = Date.now()
    const isEnough = (): boolean =>
      isWhole && Date.now() - startedAt > longest && tally.missing().length === 0
    const property = fc.asyncProperty(anyPlan(isWhole ? 20 : 5), (plan) => {
      if (!isEnough()) last = check(plan, tally)
      return last
    })
    // Reports a failure unshrunk, because smaller plans are different runs.
    await fc.assert(property, {
      numRuns,
      seed: Number(seed),
      endOnFailure: true,
      ...(path !== '' && { path }),
      ...(isWhole && { interruptAfterTimeLimit: 3 * longest, markInterruptAsFailure: false }),
    })
    // At the time limit a run is active. It counts, and it must leave no work when the suite ends.
    await last
    console.log(tally.table(isWhole))
    if (isWhole) expect(tally.missing()).toEqual([])
  },
  4 * longest,
)

async function check(plan: Plan, tally: Tally): Promise<void> {
  const report = await play(plan, host())
  tally.count(plan, report)
  expect([...report.broken, ...unhandled()]).toEqual([])
}
