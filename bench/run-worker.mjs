// A measurement in a process of its own: nothing that ran before it is warm, or in its heap.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/**
 * What `file`, beside this one, prints for these options, as JSON. Its failure is ours. It runs on this Node unless
 * another is named, as long as it takes unless `timeout` says how many milliseconds.
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
