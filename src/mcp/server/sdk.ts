import type * as ServerSdk from '@modelcontextprotocol/server'
import type * as StdioSdk from '@modelcontextprotocol/server/stdio'
import { loadPeer } from '../../core/base/platform.js'

/** @throws {StatewrightError} `missing_package` */
export function loadServerSdk(): Promise<typeof ServerSdk> {
  return loadPeer<typeof ServerSdk>('@modelcontextprotocol/server', 'Serving agents over MCP')
}

/** Apart from the other: this one needs Node. */
export function loadStdioSdk(): Promise<typeof StdioSdk> {
  return loadPeer<typeof StdioSdk>('@modelcontextprotocol/server/stdio', 'Serving agents over MCP')
}
