// Each measurement runs in a separate process, so that earlier work neither warms the code nor fills the heap.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/**
 * Runs `file` from this folder with the given options and parses its output as JSON. Fails when the process fails. Uses this Node
 * unless another is named. `timeout` is in milliseconds; by default there is none.
 */
export function runWorker(file, options, flags = [], { node = process.execPath, ...how } = {}) {
  const { status, signal, error, stdout, stderr } = spawnSync(
    node,
    [...flags, fileURLToPath(new URL(file, import.meta.url)), JSON.stringify(options)],
    { encoding: 'utf8', ...how },
  )
  if (error) throw error
  if (status !== 0) throw new Error(stderr || `the worker ended with ${status ?? signal}`)
  return JSON.parse(stdout)
}
