import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import type { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import type { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { ResultSchema, ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'
import { loadPeer } from '../core/base/lazy-load.js'

interface ClientModule {
  Client: typeof Client
}

interface TypesModule {
  ResultSchema: typeof ResultSchema
  ToolListChangedNotificationSchema: typeof ToolListChangedNotificationSchema
}

/** What every connection needs of the SDK. @throws {StatewrightError} `missing_package` */
export async function loadClient(): Promise<ClientModule & TypesModule> {
  const { Client } = await load<ClientModule>('client/index.js')
  // The client brings these along.
  const { ResultSchema, ToolListChangedNotificationSchema } = await load<TypesModule>('types.js')
  return { Client, ResultSchema, ToolListChangedNotificationSchema }
}

/** Apart from the other transport: this one needs Node. */
export async function loadStdio(): Promise<typeof StdioClientTransport> {
  const module = await load<{ StdioClientTransport: typeof StdioClientTransport }>('client/stdio.js')
  return module.StdioClientTransport
}

export async function loadHttp(): Promise<typeof StreamableHTTPClientTransport> {
  const file = 'client/streamableHttp.js'
  const module = await load<{ StreamableHTTPClientTransport: typeof StreamableHTTPClientTransport }>(file)
  return module.StreamableHTTPClientTransport
}

function load<Module>(file: string): Promise<Module> {
  return loadPeer<Module>(`@modelcontextprotocol/sdk/${file}`, 'Using MCP servers')
}
