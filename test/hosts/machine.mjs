// Simulates a process on another machine, as far as other processes can detect.
import { createRequire, syncBuiltinESMExports } from 'node:module'

const os = createRequire(import.meta.url)('node:os')

/** Undefined means this machine. */
export function beOn(machine) {
  if (machine === undefined) return
  os.hostname = () => machine
  syncBuiltinESMExports()
}
