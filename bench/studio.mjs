/**
 * The cost of the studio in a browser: npm run bench -- studio. Measures the time from the click on a session of 5,000 records to
 * its paint, one second after the list has loaded. Also measures the frame intervals while a key per frame moves through the
 * records, by the browser's frame clock. 16.7 ms means that every record reached the next frame; 33.3 ms means that one was late.
 * The same keys on an empty page give the machine's baseline. Also reports the main-thread time per key.
 */
import { z } from 'zod'
import { createAgent, defineTool, memoryStore, openaiChat } from '../dist/src/index.js'
import { startRehearsal } from '../dist/src/rehearsal/index.js'
import { startStudio } from '../dist/src/studio/index.js'
import { launchChromium } from '../scripts/chromium.mjs'

const steps = 2_490
const opens = 5
const moves = 300

const turns = Array.from({ length: steps }, (_, i) => ({
  text: `**Step ${i + 1}**: I look up \`thing ${i + 1}\`.`,
  toolCalls: [{ id: `c${i}`, name: 'look_up', arguments: { what: `thing ${i + 1}` } }],
}))
const rehearsal = await startRehearsal({ turns: [...turns, { text: 'All is looked up.' }] })
const store = memoryStore()
const lookUp = defineTool({
  name: 'look_up',
  description: 'Looks something up.',
  input: z.object({ what: z.string() }),
  readOnly: true,
  execute: ({ what }) => ({ about: what, letters: what.length }),
})
const model = openaiChat({ model: 'rehearsal', baseURL: rehearsal.url, apiKey: 'none' })
const agent = createAgent({ model, store, tools: [lookUp], limits: { maxSteps: null }, prices: null })
await agent.run('Look up everything.', { session: 'long' }).result
const studio = await startStudio({ store, agent })
const browser = await launchChromium()
const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce' })
await page.goto(studio.url)
await page.waitForSelector('.session')
// The page prefetches the session at the top of the list.
await page.waitForTimeout(1_000)

/** Milliseconds until the element is present and painted. */
const measurePaint = (act, selector) =>
  page.evaluate(
    ([act, selector]) =>
      new Promise((resolve) => {
        const start = performance.now()
        const look = () => {
          if (!document.querySelector(selector)) return requestAnimationFrame(look)
          // After the frame that draws it.
          return requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - start)))
        }
        location.hash = act
        requestAnimationFrame(look)
      }),
    [act, selector],
  )

const paints = []
for (let i = 0; i < opens; i += 1) {
  paints.push(await measurePaint('#/session/long', '.run .panel .message'))
  if (i < opens - 1) await measurePaint('#/', '.session')
}
await page.waitForSelector('.steps-box .step')
// Until the whole session is there, most records have nothing to draw.
await page.waitForSelector('[aria-label="Usage and duration"]', { timeout: 120_000 })
// The page loads the blocks around the record before the keys arrive.
await page.waitForTimeout(1_000)
/** The intervals between frames in milliseconds, with one key per frame. */
const measureFrames = (page) =>
  page.evaluate(async (moves) => {
    const frames = []
    for (let i = 0; i <= moves; i += 1) {
      document.body.dispatchEvent(
        new KeyboardEvent('keydown', { key: 'ArrowLeft', bubbles: true, cancelable: true }),
      )
      // The start of the frame, reported after its paint.
      frames.push(
        await new Promise((resolve) => requestAnimationFrame((began) => setTimeout(() => resolve(began)))),
      )
    }
    return frames.slice(1).map((began, i) => began - frames[i])
  }, moves)
const devtools = await page.context().newCDPSession(page)
await devtools.send('Performance.enable')
const readTasks = async () => {
  const { metrics } = await devtools.send('Performance.getMetrics')
  return metrics.find(({ name }) => name === 'TaskDuration').value * 1_000
}
const before = await readTasks()
const frames = await measureFrames(page)
const perKey = ((await readTasks()) - before) / moves
const empty = await browser.newPage({ viewport: { width: 1280, height: 800 } })
await empty.goto('about:blank')
const emptyFrames = await measureFrames(empty)

const at = (values, part) => values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) * part)]
const records = store.read('long').length
console.log(
  `${records} records: painted in ${at(paints, 0.5).toFixed(0)} ms (first ${paints[0].toFixed(0)} ms)`,
)
const describe = (name, values) =>
  `${name}: p50 ${at(values, 0.5).toFixed(1)} ms from frame to frame, p95 ${at(values, 0.95).toFixed(1)} ms, ${values.filter((ms) => ms > 25).length} of ${moves} too late`
console.log(`${describe('scrubbing', frames)}; ${perKey.toFixed(1)} ms of the main thread a key`)
console.log(describe('the same keys on an empty page', emptyFrames))
await browser.close()
await studio.close()
await rehearsal.close()
