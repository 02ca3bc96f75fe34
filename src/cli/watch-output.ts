import type { Writable } from 'node:stream'
import { getErrorCode } from './load-file.js'

/**
 * Detects failed writes: otherwise a full disk behind `> FILE` would count as success. A closed pipe (`| head`) is not a
 * failure.
 */
export function watchOutput(stream: Writable): { end(): Promise<string | null> } {
  let fault: Error | null = null
  const note = (error: Error | null): void => {
    if (getErrorCode(error) !== 'EPIPE') fault ??= error
  }
  stream.on('error', note)
  return {
    /** Waits for all writes: why one failed; null when none did. */
    async end() {
      await waitForWrites(stream)
      // A failure reaches listeners a moment later, and stdout forgets it with the next write.
      note(stream.errored)
      return fault === null ? null : fault.message
    },
  }
}

/** Resolves when all writes are done or have failed. */
export function waitForWrites(stream: Writable): Promise<void> {
  return new Promise((resolve) => {
    if (stream.destroyed || !stream.writable) resolve()
    else stream.write('', () => resolve())
  })
}
