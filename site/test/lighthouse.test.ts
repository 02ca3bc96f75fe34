// Runs Lighthouse with a phone that loads the pages over slow 4G.
//
// The performance score is not asserted, because it depends on the machine's speed and load. It has three parts:
// - Network cost. Lighthouse computes it from the page's requests. Here the simulation uses an infinitely fast processor and a
// server that always answers after `serverMs`, so that every machine computes the same values. The first and the largest paint are
// asserted.
// - Script cost. `site.test.ts` limits the bytes that load before the first interaction. The time is not asserted.
// - Layout shift during loading, which is asserted.
// The score appears next to each test, for a phone that is the same on all machines (`phoneIndex`). It never fails a test.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { launch } from 'chrome-launcher'
import lighthouse, { auditFlowArtifacts, type Flags } from 'lighthouse'
import { serveSite } from '../serve.ts'
import { chromiumPath } from './browser.ts'

const pages = ['', 'docs/runs/', 'docs/conformance/', 'api/statewright/functions/createAgent/', 'playground/']

/** Lighthouse's slow 4G. */
const slow4G = {
  rttMs: 150,
  throughputKbps: 1638.4,
  requestLatencyMs: 562.5,
  downloadThroughputKbps: 1474.56,
  uploadThroughputKbps: 675,
}
/** Milliseconds that a static file host takes, independent of this machine. */
const serverMs = 30
/**
 * The `benchmarkIndex` of the phone. According to Lighthouse's throttling guide, a mid-range phone has 125 to 800, and the usual
 * slowdown of 4 fits a desktop of 1500 to 2000. This phone is four times slower than a desktop of 1600.
 */
const phoneIndex = 400

/** Milliseconds that a busy machine may need for a page. */
const patienceMs = 180_000

let served: Awaited<ReturnType<typeof serveSite>>

before(async () => {
  served = await serveSite()
})

after(() => served.close())

describe('Lighthouse', () => {
  for (const path of pages) {
    it(`/${path} is accessible and loads fast on a slow network`, async (test) => {
      const chrome = await launch({
        chromePath: chromiumPath,
        chromeFlags: ['--headless', '--no-sandbox', '--disable-gpu', '--no-proxy-server'],
      })
      try {
        const { origin } = new URL(served.url)
        const flags: Flags = {
          logLevel: 'error',
          maxWaitForFcp: patienceMs,
          maxWaitForLoad: patienceMs,
          throttling: { ...slow4G, cpuSlowdownMultiplier: 0 },
          precomputedLanternData: {
            additionalRttByOrigin: { [origin]: 0 },
            serverResponseTimeByOrigin: { [origin]: serverMs },
          },
        }
        const result = await lighthouse(served.url + path, { ...flags, port: chrome.port })
        assert.ok(result)
        const { lhr, artifacts } = result
        const score = (category: string): number => Math.round((lhr.categories[category]?.score ?? 0) * 100)
        assert.deepEqual([score('accessibility'), score('best-practices'), score('seo')], [100, 100, 100])
        const number = (audit: string): number => lhr.audits[audit]?.numericValue ?? Infinity
        // The thresholds that web.dev calls good.
        assert.ok(number('first-contentful-paint') <= 1800, `first paint ${number('first-contentful-paint')}`)
        assert.ok(
          number('largest-contentful-paint') <= 2500,
          `largest paint ${number('largest-contentful-paint')}`,
        )
        assert.ok(number('cumulative-layout-shift') <= 0.1, `shift ${number('cumulative-layout-shift')}`)

        const { benchmarkIndex } = lhr.environment
        const throttling = { ...slow4G, cpuSlowdownMultiplier: benchmarkIndex / phoneIndex }
        const { steps } = await auditFlowArtifacts({
          gatherSteps: [
            {
              artifacts: { ...artifacts, settings: { ...artifacts.settings, throttling } },
              flags: { ...flags, throttling, name: path },
            },
          ],
        })
        const onPhone = steps[0]?.lhr
        const ms = (audit: string): number => Math.round(onPhone?.audits[audit]?.numericValue ?? 0)
        test.diagnostic(
          `/${path} has performance ${Math.round((onPhone?.categories['performance']?.score ?? 0) * 100)} on the phone: first paint ${ms('first-contentful-paint')} ms, largest ${ms('largest-contentful-paint')} ms, blocked ${ms('total-blocking-time')} ms. The network alone: ${Math.round(number('first-contentful-paint'))} and ${Math.round(number('largest-contentful-paint'))} ms. This machine: ${benchmarkIndex}.`,
        )
      } finally {
        chrome.kill()
      }
    })
  }
})
