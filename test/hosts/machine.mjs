// Lets a process be on another machine, as far as others can tell.
import { createRequire, syncBuiltinESMExports } from 'node:module'

const os = createRequire(import.meta.url)('node:os')

/** Undefined: on this one. */
export function beOn(machine) {
  if (machine === undefined) return
  os.hostname = () => machine
  syncBuiltinESMExports()
}
