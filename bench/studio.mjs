/**
 * What the studio costs in a browser: npm run bench:studio. How long it takes from the click on a
 * session of 5,000 records until it is painted, and from a key that moves through its records until that record is.
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
const scrubs = await page.evaluate(async (moves) => {
  const times = []
  for (let i = 0; i < moves; i += 1) {
    const start = performance.now()
    document.body.dispatchEvent(
      new KeyboardEvent('keydown', { key: 'ArrowLeft', bubbles: true, cancelable: true }),
    )
    await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))
    times.push(performance.now() - start)
  }
  return times
}, moves)

const at = (values, part) => values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) * part)]
const records = store.read('long').length
console.log(
  `${records} records: painted in ${at(paints, 0.5).toFixed(0)} ms (first ${paints[0].toFixed(0)} ms)`,
)
console.log(
  `scrubbing: p50 ${at(scrubs, 0.5).toFixed(1)} ms, p95 ${at(scrubs, 0.95).toFixed(1)} ms of ${moves} records`,
)
await browser.close()
await studio.close()
await rehearsal.close()
