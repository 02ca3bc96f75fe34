import type { Writable } from 'node:stream'

/**
 * Reserves stdout of the process for the protocol. Until `release`, all other writes to it go to stderr, such as those of
 * `console.log`: a line that is not a message ends the connection of some clients.
 */
export function reserveStdout(): { stdout: Writable; release: () => void } {
  // Workers import this module, too, and have no such streams.
  const stream = process.getBuiltinModule('node:stream')
  const { stdout, stderr } = process
  const write = stdout.write.bind(stdout)
  stdout.write = stderr.write.bind(stderr)
  return {
    stdout: new stream.Writable({
      // The stream itself reports its errors.
      write: (chunk: Uint8Array, encoding, done) => void write(chunk, encoding, () => done()),
    }),
    release: () => {
      stdout.write = write
    },
  }
}
