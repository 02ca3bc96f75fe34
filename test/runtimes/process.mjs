// For Node, Bun and Deno: process.mjs URL FOLDER prints the result of each feature as JSON.
import { playAll } from './features.mjs'

const [url, folder] = process.argv.slice(2)
const loadFileStore = async () => {
  const { fileStore } = await import('statewright/stores/file')
  return () => fileStore({ dir: folder })
}
console.log(JSON.stringify(await playAll(url, { loadFileStore })))
process.exit(0)
