import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/** The retained bytes after a full collection. */
export function getUsedBytes(): number {
  // The first pass leaves buffers and finalizer work to the second.
  collectGarbage()
  collectGarbage()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** `length` characters, in pieces of about a thousand that share no memory. */
export function* pieces(length: number): Generator<string> {
  for (let at = 0; at < length; at += 1000)
    yield Buffer.from(`${at} `.padEnd(1000, 'word ')).toString('latin1')
}
