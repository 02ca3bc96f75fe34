import type * as ServerSdk from '@modelcontextprotocol/server'
import type * as StdioSdk from '@modelcontextprotocol/server/stdio'
import { loadPeer } from '../../core/base/platform.js'
import type { Writable } from 'node:stream'

/** @throws {StatewrightError} `missing_package` */
export function loadServerSdk(): Promise<typeof ServerSdk> {
  return loadPeer<typeof ServerSdk>('@modelcontextprotocol/server', 'Serving agents over MCP')
}

/** Loads the SDK's stdio module. It is loaded separately, because it needs Node. */
export function loadStdioSdk(): Promise<typeof StdioSdk> {
  return loadPeer<typeof StdioSdk>('@modelcontextprotocol/server/stdio', 'Serving agents over MCP')
}

/**
 * Reserves the process's stdout for the protocol. Until `release`, all other output, such as from `console.log`, goes
 * to stderr, because some clients close the connection on a line that is not a message.
 */
export function reserveStdout(): { stdout: Writable; release: () => void } {
  // Workers import this module too, but have no such streams.
  const stream = process.getBuiltinModule('node:stream')
  const { stdout, stderr } = process
  const write = stdout.write.bind(stdout)
  stdout.write = stderr.write.bind(stderr)
  return {
    stdout: new stream.Writable({
      // The stream reports its own errors.
      write: (chunk: Uint8Array, encoding, done) => void write(chunk, encoding, () => done()),
    }),
    release: () => {
      stdout.write = write
    },
  }
}
