import type { Writable } from 'node:stream'
import { getErrorCode } from './load-file.js'

/**
 * Notices what a stream could not take: a full disk behind `> FILE` would otherwise count as success. A reader that has
 * gone (`| head`) is no such fault: it had what it wanted.
 */
export function watchOutput(stream: Writable): { end(): Promise<string | null> } {
  let fault: Error | null = null
  const note = (error: Error | null): void => {
    if (getErrorCode(error) !== 'EPIPE') fault ??= error
  }
  stream.on('error', note)
  return {
    /** Once all that was written is through: why some of it is not; null when it is. */
    async end() {
      await waitForWrites(stream)
      // What has just failed is told to listeners a moment later; stdout forgets it by the next write.
      note(stream.errored)
      return fault === null ? null : fault.message
    },
  }
}

/** Settles when what was written has got through, or never will. */
export function waitForWrites(stream: Writable): Promise<void> {
  return new Promise((resolve) => {
    if (stream.destroyed || !stream.writable) resolve()
    else stream.write('', () => resolve())
  })
}
