/**
 * What the studio costs in a browser: npm run bench -- studio. How long it takes from the click on a session of 5,000 records until it is
 * painted, the first time a second after the list is there; and how far the frames are apart while a key in each of them moves through
 * the records, by the browser's own clock of frames: 16.7 ms where every record is in the next frame, 33.3 ms where one was too late.
 * The same keys on an empty page say what the machine can do. Besides that, what a key costs the page's main thread.
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
// What is at the top of the list is read ahead while a reader looks at it.
await page.waitForTimeout(1_000)

/** Milliseconds until this is there and painted. */
const measurePaint = (act, selector) =>
  page.evaluate(
    ([act, selector]) =>
      new Promise((resolve) => {
        const start = performance.now()
        const look = () => {
          if (!document.querySelector(selector)) return requestAnimationFrame(look)
          // After the frame in which it is drawn.
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
// The page loads the blocks around the record before the keys come.
await page.waitForTimeout(1_000)
/** Milliseconds from frame to frame, with one key in each. */
const measureFrames = (page) =>
  page.evaluate(async (moves) => {
    const frames = []
    for (let i = 0; i <= moves; i += 1) {
      document.body.dispatchEvent(
        new KeyboardEvent('keydown', { key: 'ArrowLeft', bubbles: true, cancelable: true }),
      )
      // When the frame began, told after it is painted.
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
