import type { JsonObject } from '../../../../machines/agent/json.js'
import { describeError, StatewrightError } from '../../../core/base/errors.js'
import { type ArgumentRule, expectArgument } from '../../../core/base/values.js'
import type { McpServer } from '../mcp-server.js'

/** The answer of a server to a request. */
export type Asker = (method: string, params: JsonObject, signal?: AbortSignal) => Promise<JsonObject>

const askers = new WeakMap<object, Asker>()

export function registerAsker(server: object, ask: Asker): void {
  askers.set(server, ask)
}

const ofMcpTools: ArgumentRule = {
  is: (value) => typeof value === 'object' && value !== null && askers.has(value),
  phrase: 'what mcpTools has returned',
}

/** @throws {UsageError} `invalid_argument` */
export function expectServer(call: string, server: McpServer): void {
  expectArgument(call, server, ofMcpTools)
}

/**
 * Asks a server on behalf of the app. `call` names the function as the caller wrote it.
 * @throws {UsageError} `invalid_argument`
 * @throws {StatewrightError} `mcp_failed`
 */
export async function askServer(
  call: string,
  server: McpServer,
  method: string,
  params: JsonObject,
): Promise<JsonObject> {
  expectServer(call, server)
  try {
    return (await askers.get(server)?.(method, params)) ?? {}
  } catch (error) {
    throw new StatewrightError('mcp_failed', describeError(error), server.name, { cause: error })
  }
}
