// A measurement in a process of its own: nothing that ran before it is warm, or in its heap.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** What `file`, beside this one, prints for these options, as JSON. Its failure is ours. */
export function runWorker(file, options, flags = []) {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [...flags, fileURLToPath(new URL(file, import.meta.url)), JSON.stringify(options)],
    { encoding: 'utf8' },
  )
  if (status !== 0) throw new Error(stderr || `the worker ended with ${status}`)
  return JSON.parse(stdout)
}
