import type * as ClientSdk from '@modelcontextprotocol/client'
import type * as StdioSdk from '@modelcontextprotocol/client/stdio'
import { loadPeer } from '../../core/base/platform.js'

/** @throws {StatewrightError} `missing_package` */
export function loadClientSdk(): Promise<typeof ClientSdk> {
  return loadPeer<typeof ClientSdk>('@modelcontextprotocol/client', 'Using MCP servers')
}

/** Apart from the other: this one needs Node. */
export function loadStdioSdk(): Promise<typeof StdioSdk> {
  return loadPeer<typeof StdioSdk>('@modelcontextprotocol/client/stdio', 'Using MCP servers')
}
