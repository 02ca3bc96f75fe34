import type {
  CallToolResult,
  Client,
  RequestOptions,
  StandardSchemaV1,
  Tool,
} from '@modelcontextprotocol/client'
import { truncate } from '../../../guards/lib/words.js'
import type { Json, JsonObject } from '../../../machines/agent/json.js'
import type { ElicitationAnswer } from '../../../machines/agent/run-result.js'
import { describeError, listCauses } from '../../core/base/errors.js'
import { maxTimerMs } from '../../core/base/clock.js'
import { limitTime } from '../../core/base/abort.js'
import { readProperty } from '../../core/base/json.js'
import { omitUndefined } from '../../../guards/lib/json.js'
import {
  toCallError,
  findHttpStatus,
  ServerLostError,
  SessionExpiredError,
  toStartError,
  loadClientSdk,
  type ServerLoss,
  type ServerWire,
  type WireEvents,
} from './server-wire.js'
import { createHttpWire, createSseWire, createStdioWire } from './wires.js'
import type { CallContinuation, CallWatch } from './asking-call.js'
import type { CheckedMcpOptions } from './mcp-options.js'
import { stripInvisible } from './plain-text.js'
import type { SignIn } from './sign-in/sign-in.js'
import { tasksExtension } from './task-wire.js'

/** Statewright servers recognize a repeated call by this key. */
const keyName = 'statewright/key'

export interface McpCall extends CallWatch {
  name: string
  inputSchema: JsonObject
  args: JsonObject
  /** Whether the call requests a task, which is necessary in the older form. */
  isTask: boolean
  /** The idempotency key. It stays the same if the call is repeated after a crash. */
  key: string
  handle: unknown
  /** Stores the handle in the log. Undefined without a log. */
  keepHandle: ((handle: Json) => Promise<void>) | undefined
  continuation: CallContinuation
}

export type McpConnection = Awaited<ReturnType<typeof beginConnection>>

interface McpConnectionEvents {
  onToolsChanged: () => void
  onElicitation: (params: unknown) => Promise<ElicitationAnswer>
}

/** @throws {StatewrightError} `mcp_unavailable`, `mcp_timeout`, `mcp_sign_in`, `missing_package` */
export async function connectServer(
  options: CheckedMcpOptions,
  events: McpConnectionEvents,
  signIn?: SignIn,
): Promise<McpConnection> {
  const connect = (mode: ConnectionMode, openWire: OpenWire): Promise<McpConnection> =>
    beginConnection(options, events, { mode, openWire, signIn })
  const openWire: OpenWire = (wireEvents) =>
    'command' in options ? createStdioWire(options, wireEvents) : createHttpWire(options, wireEvents, signIn)
  return afterSignIn(signIn, async () => {
    try {
      return await connect('auto', openWire)
    } catch (error) {
      const { cause } = error as Error
      if ('command' in options) {
        // Some servers exit on an unknown request.
        if (cause instanceof ServerLostError && cause.loss.transient) return await connect('legacy', openWire)
        throw error
      }
      if (![400, 404, 405].includes(findHttpStatus(cause) ?? 0)) throw error
      // Others offer only an event stream. If this fails too, the first error is more useful.
      return await connect('legacy', (wireEvents) => createSseWire(options, wireEvents, signIn)).catch(() => {
        throw error
      })
    }
  })
}

/** `auto` negotiates the revision without initializing first. `legacy` initializes immediately. */
type ConnectionMode = 'auto' | 'legacy'

type OpenWire = (events: WireEvents) => Promise<ServerWire>

async function afterSignIn<Result>(signIn: SignIn | undefined, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    const isRefused = listCauses(error).some((cause) => readProperty(cause, 'name') === 'UnauthorizedError')
    if (signIn === undefined || !isRefused) throw error
    await signIn.ask()
    return await work()
  }
}

async function beginConnection(
  options: CheckedMcpOptions,
  events: McpConnectionEvents,
  { mode, openWire, signIn }: { mode: ConnectionMode; openWire: OpenWire; signIn: SignIn | undefined },
) {
  const { startTimeoutMs } = options
  const sdk = await loadClientSdk()
  const waiting = new Set<(loss: ServerLoss) => void>()
  let loss: ServerLoss | undefined
  let isClosed = false
  let complaint = ''

  const onLost = (why: ServerLoss): void => {
    if (loss !== undefined || isClosed) return
    loss = why
    for (const notify of waiting) notify(why)
    wire.kill()
    void closeClient()
  }
  const onComplaint = (error: Error): void => void (complaint = describeError(error).slice(0, 1_000))
  const wire = await openWire({ onLost, onComplaint })
  const probe = { timeoutMs: wire.probeTimeoutMs }
  const client = new sdk.Client(
    { name: 'statewright', version: '1' },
    {
      versionNegotiation: { mode, probe },
      capabilities: { elicitation: { form: {}, url: {} }, extensions: { [tasksExtension]: {} } },
    },
  )
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the SDK has this only
  client.onerror = onComplaint
  client.setNotificationHandler('notifications/tools/list_changed', () => events.onToolsChanged())
  client.setRequestHandler('elicitation/create', ({ params }) => events.onElicitation(params))

  /** Closes the client. The SDK knows the client's transport only after the initialization. */
  const closeClient = async (): Promise<void> => {
    await client.close().catch(() => undefined)
    await wire.transport.close().catch(() => undefined)
  }

  /** Rejects as soon as the server is lost, which the SDK may notice much later. */
  const orLoss = <Result>(work: Promise<Result>): Promise<Result> =>
    new Promise((resolve, reject) => {
      const notify = (why: ServerLoss): void => reject(new ServerLostError(why))
      if (loss !== undefined) notify(loss)
      waiting.add(notify)
      work.then(resolve, reject).finally(() => waiting.delete(notify))
    })

  const close = async (): Promise<void> => {
    if (isClosed) return
    isClosed = true
    if (loss === undefined) await wire.shutDown()
    await closeClient()
  }

  try {
    await limitTime({ ms: startTimeoutMs }, orLoss(client.connect(wire.transport, { timeout: maxTimerMs })))
  } catch (error) {
    isClosed = true
    wire.kill()
    await closeClient()
    throw toStartError(error, wire, startTimeoutMs, complaint)
  }

  const isModern = client.getProtocolEra() === 'modern'
  const listen = createChangeListener(client, startTimeoutMs, events.onToolsChanged)
  if (isModern) listen()
  const serverName = truncate(stripInvisible(client.getServerVersion()?.name ?? '').trim(), 100)
  const name = options.name ?? serverName
  const request = async (work: () => Promise<JsonObject>): Promise<JsonObject> => {
    try {
      return await afterSignIn(signIn, () => orLoss(work()))
    } catch (error) {
      const mayEnd = wire.transport.sessionId !== undefined
      if (!mayEnd || !(await isSessionLost(error, client, startTimeoutMs)))
        throw toCallError(error, name, wire)
      onLost({ reason: 'ended the session', transient: true })
      const message = `The MCP server '${name}' no longer recognizes its session.`
      throw new SessionExpiredError(message, { cause: error })
    }
  }
  return {
    serverName,
    hasTools: client.getServerCapabilities()?.tools !== undefined,
    hasResources: client.getServerCapabilities()?.resources !== undefined,
    /** Whether schemas can specify arguments to be sent as headers too. */
    hasHeaders: isModern && wire.hasHeaders,
    tasks: findTasks(client, isModern),
    get isLost() {
      return loss !== undefined
    },
    close,
    listTools: (cursor: string | undefined): Promise<JsonObject> => {
      const params = cursor === undefined ? {} : { cursor }
      return orLoss(client.request({ method: 'tools/list', params }, anyResult, { timeout: startTimeoutMs }))
    },
    /** @throws {SessionExpiredError}, and an Error (possibly a ToolError) for the model */
    callTool: (call: McpCall): Promise<JsonObject> => {
      if (isModern) listen()
      return request(() => requestCall(client, call, isModern))
    },
    /** Sends any other request. Throws the same errors as `callTool`. A timeout of 0 is off. */
    ask: (
      method: string,
      params: JsonObject,
      {
        signal,
        timeoutMs = options.timeoutMs,
      }: { signal?: AbortSignal | undefined; timeoutMs?: number | undefined } = {},
    ): Promise<JsonObject> => {
      const timeout = timeoutMs === 0 ? maxTimerMs : Math.min(timeoutMs, maxTimerMs)
      return request(() =>
        client.request({ method, params }, anyResult, { ...(signal && { signal }), timeout }),
      )
    },
  }
}

/** Whether the server creates tasks on its own (`extension`) or on request (`asked`). */
function findTasks(client: Client, isModern: boolean): 'extension' | 'asked' | 'none' {
  const { extensions, tasks } = client.getServerCapabilities() ?? {}
  if (isModern) return extensions?.[tasksExtension] === undefined ? 'none' : 'extension'
  return tasks?.requests?.tools?.call === undefined ? 'none' : 'asked'
}

/** Accepts results of older revisions unchecked, because the SDK validates only results of the newer revision. */
async function requestCall(
  client: Client,
  { name, args, inputSchema, isTask, key, continuation, signal, onProgress }: McpCall,
  isModern: boolean,
): Promise<JsonObject> {
  const options: RequestOptions = {
    signal,
    // The call has a separate timer, which stops while a person is asked.
    timeout: maxTimerMs,
    resetTimeoutOnProgress: true,
    onprogress: ({ progress, total, message }) =>
      onProgress({ progress, ...omitUndefined({ total, message }) }),
  }
  const meta = { _meta: { [keyName]: key }, ...(isTask && { task: {} }) }
  const params = { name, arguments: args, ...meta, ...continuation }
  if (!isModern) return client.request({ method: 'tools/call', params }, anyResult, options)
  // The SDK reads from the schema which arguments to send as headers.
  const toolDefinition = { name, inputSchema } as Tool
  const modern = { ...options, toolDefinition, allowInputRequired: true as const }
  return (await client.callTool(params, modern)) satisfies CallToolResult as JsonObject
}

/** Accepts any object. Its parts are validated where they are used. */
const anyResult: StandardSchemaV1<unknown, JsonObject> = {
  '~standard': { version: 1, vendor: 'statewright', validate: (value) => ({ value: value as JsonObject }) },
}

/** In the newer revision, servers report changes on a stream. Each call reopens a stream that has ended. */
function createChangeListener(client: Client, timeout: number, onChanged: () => void): () => void {
  let isListening = client.getServerCapabilities()?.tools?.listChanged !== true
  let isFirst = true
  const open = async (): Promise<void> => {
    const { closed } = await client.listen({ toolsListChanged: true }, { timeout })
    // Changes between two streams are not reported, so they are assumed.
    if (!isFirst) onChanged()
    isFirst = false
    await closed
  }
  return () => {
    if (isListening) return
    isListening = true
    void open()
      .catch(() => undefined)
      .finally(() => (isListening = false))
  }
}

/** Servers report this with a status or an error. A tool may use the same words, so a ping decides. */
async function isSessionLost(error: unknown, client: Client, timeout: number): Promise<boolean> {
  // 404 according to the specification, and 400 in the example that many servers follow.
  if ([404, 400].includes(findHttpStatus(error) ?? 0)) return true
  // These expressions take quadratic time.
  const words = describeError(error).slice(0, 1_000)
  if (typeof readProperty(error, 'code') !== 'number' || !sessionLost.some((one) => one.test(words)))
    return false
  return client.request({ method: 'ping' }, anyResult, { timeout }).then(
    () => false,
    () => true,
  )
}

const sessionLost = [
  /\bsession\b.*\b(not found|expired|unknown|invalid|terminated|closed|not exist|no longer|not initialized)\b/i,
  /\b(unknown|invalid|expired|no|no valid|missing)( mcp)? session\b|\bserver not initialized\b/i,
]
