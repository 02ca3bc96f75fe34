// Run by storage.mjs on a separate disk. Reads its cases from standard input and prints its findings as JSON.
import { text } from 'node:stream/consumers'
import { startModelServer } from './model-server.mjs'
import { inParallel } from './pool.mjs'
import { playFaulty } from './storage.mjs'

const { dir, result, cases } = JSON.parse(await text(process.stdin))
const model = await startModelServer()
// Sequential, because they share one disk.
const played = await inParallel(cases, 1, async (each) => {
  const { problems } = await playFaulty(each, model, result, dir)
  return { name: each.name, problems }
})
model.close()
console.log(JSON.stringify(played))
