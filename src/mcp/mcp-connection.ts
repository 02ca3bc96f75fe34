import type { JsonObject } from '../../machines/agent/json.js'
import { describeError } from '../core/base/describe-error.js'
import { maxTimerMs } from '../core/base/clock.js'
import { limitTime } from '../core/base/time-limit.js'
import {
  toCallError,
  findHttpStatus,
  ServerLostError,
  SessionExpiredError,
  toStartError,
} from './mcp-errors.js'
import { createHttpWire } from './http-wire.js'
import type { CheckedMcpOptions } from './mcp-options.js'
import { cutText, stripInvisible } from './plain-text.js'
import { loadClient } from './mcp-sdk.js'
import { createStdioWire } from './stdio-wire.js'
import type { ServerLoss } from './server-wire.js'

export interface McpCall {
  /** The server's own name of the tool. */
  name: string
  args: JsonObject
  signal: AbortSignal
  onProgress: (progress: JsonObject) => void
}

export interface McpConnection {
  /** The name that the server gives itself; '' when it gives none. */
  readonly serverName: string
  readonly hasTools: boolean
  /** Whether the server is gone. */
  readonly isLost: boolean
  /** One page of the list, as the server sent it. */
  listTools(cursor: string | undefined): Promise<JsonObject>
  /**
   * The result as the server sent it.
   * @throws {SessionExpiredError} and an Error, perhaps a ToolError, that tells the model what happened
   */
  callTool(call: McpCall): Promise<JsonObject>
  close(): Promise<void>
}

export interface McpConnectionEvents {
  onToolsChanged: () => void
}

/**
 * Starts or reaches the server and exchanges greetings with it.
 * @throws {StatewrightError} `mcp_unavailable`, `mcp_timeout`, `missing_package`
 */
export async function connectServer(
  options: CheckedMcpOptions,
  events: McpConnectionEvents,
): Promise<McpConnection> {
  const { startTimeoutMs, maxMessageBytes } = options
  const { Client, ResultSchema, ToolListChangedNotificationSchema } = await loadClient()
  /** Those who wait for an answer, told when none will come. */
  const waiting = new Set<(loss: ServerLoss) => void>()
  let loss: ServerLoss | undefined
  let isClosed = false
  let complaint = ''

  const onLost = (why: ServerLoss): void => {
    if (loss !== undefined || isClosed) return
    loss = why
    for (const tell of waiting) tell(why)
    wire.kill()
    void client.close().catch(() => undefined)
  }
  const wire =
    'command' in options
      ? await createStdioWire({ ...options, maxMessageBytes }, { onLost })
      : await createHttpWire({ ...options, maxMessageBytes }, { onLost })
  const client = new Client({ name: 'statewright', version: '1' })
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the SDK has this only
  client.onerror = (error) => {
    complaint = describeError(error).slice(0, 1_000)
  }
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => {
    events.onToolsChanged()
  })

  /** The work, or a rejection as soon as the server is lost: the SDK may learn of it much later. */
  const orLoss = <Result>(work: Promise<Result>): Promise<Result> =>
    new Promise((resolve, reject) => {
      const tell = (why: ServerLoss): void => {
        reject(new ServerLostError(why))
      }
      if (loss !== undefined) tell(loss)
      waiting.add(tell)
      work.then(resolve, reject).finally(() => {
        waiting.delete(tell)
      })
    })

  const close = async (): Promise<void> => {
    if (isClosed) return
    isClosed = true
    if (loss === undefined) await wire.shutDown()
    await client.close().catch(() => undefined)
  }

  try {
    await limitTime({ ms: startTimeoutMs }, orLoss(client.connect(wire.transport, { timeout: maxTimerMs })))
  } catch (error) {
    isClosed = true
    wire.kill()
    await client.close().catch(() => undefined)
    throw toStartError(error, wire, startTimeoutMs, complaint)
  }

  const { transport } = wire
  const serverName = cutText(stripInvisible(client.getServerVersion()?.name ?? '').trim(), 100)
  return {
    serverName,
    hasTools: client.getServerCapabilities()?.tools !== undefined,
    get isLost() {
      return loss !== undefined
    },
    listTools: (cursor) => {
      const params = cursor === undefined ? {} : { cursor }
      const request = client.request({ method: 'tools/list', params }, ResultSchema, {
        timeout: startTimeoutMs,
      })
      return orLoss(request) as Promise<JsonObject>
    },
    callTool: async ({ name, args, signal, onProgress }) => {
      const { timeoutMs } = options
      const params = { name, arguments: args }
      try {
        const request = client.request({ method: 'tools/call', params }, ResultSchema, {
          signal,
          timeout: timeoutMs === 0 ? maxTimerMs : Math.min(timeoutMs, maxTimerMs),
          resetTimeoutOnProgress: true,
          onprogress: ({ progress, total, message }) => {
            onProgress({
              progress,
              ...(total !== undefined && { total }),
              ...(message !== undefined && { message }),
            })
          },
        })
        return (await orLoss(request)) as JsonObject
      } catch (error) {
        if (transport.sessionId !== undefined && expiredStatuses.includes(findHttpStatus(error))) {
          onLost({ reason: 'has ended the session', transient: true })
          throw new SessionExpiredError('The session has expired.', { cause: error })
        }
        throw toCallError(error, options.name ?? serverName, wire, timeoutMs)
      }
    },
    close,
  }
}

/** How servers refuse a session that they do not know: 404 by the protocol, 400 by the example that many follow. */
const expiredStatuses: readonly (number | undefined)[] = [404, 400]
