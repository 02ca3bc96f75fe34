import type * as ServerSdk from '@modelcontextprotocol/server'
import { StatewrightError } from '../../core/base/errors.js'
import { parseJsonOr, readText } from '../../core/base/json.js'
import type { AccessGrant } from '../../web/authorize.js'
import { hasCode } from '../../web/error-response.js'
import type { CheckedOptions } from './options.js'
import { type Question, toInputRequest } from './questions.js'
import type { CallState, StandingTask, TaskDesk, ToolResult } from './task-desk.js'
import { z } from 'zod'
import { quoteShellWord } from '../../core/format/shell-words.js'

/** MCP's tasks extension. */
const tasksExtension = 'io.modelcontextprotocol/tasks'
/** A key in a call's `_meta`. The same key always refers to the same task. */
const keyName = 'statewright/key'

export interface ServedConnection {
  sdk: typeof ServerSdk
  desk: TaskDesk
  options: CheckedOptions
  /** The rights of the sender. */
  grant: AccessGrant
  /** The 2026 revision has tasks and `input_required`. In earlier revisions, the client is asked over its connection. */
  era: 'legacy' | 'modern'
}

type Context = ServerSdk.ServerContext
type CallResult = Record<string, unknown> | ToolResult

/** Creates a stateless SDK server on top of the tasks. */
export function createProtocolServer(served: ServedConnection): ServerSdk.Server {
  const { sdk, options, era } = served
  const { info, instructions, tools } = options
  const extensions = { extensions: { [tasksExtension]: {} } }
  // Tasks are methods of an extension, and this class registers handlers by method.
  const server = new sdk.Server(info, {
    capabilities: { tools: {}, ...(era === 'modern' && extensions) },
    ...(instructions !== undefined && { instructions }),
    // People may take a long time to answer.
    inputRequired: { roundTimeoutMs: 86_400_000 },
  })
  server.setRequestHandler('tools/list', () => ({
    tools: [...tools.values()].map(({ name, title, description, inputSchema }) => ({
      name,
      ...(title !== undefined && { title }),
      description,
      inputSchema: inputSchema as { type: 'object' },
    })),
  }))
  server.setRequestHandler('tools/call', async (request, context) => {
    try {
      return (await callTool(served, server, request.params, context)) as ServerSdk.CallToolResult
    } catch (error) {
      throw toProtocolError(served, error)
    }
  })
  if (era === 'modern') addTaskMethods(server, served)
  return server
}

/** Handles a tool call. An unknown tool is a protocol error. Invalid arguments are reported to the client's model. */
async function callTool(
  connection: ServedConnection,
  server: ServerSdk.Server,
  params: { name: string; arguments?: Record<string, unknown> | undefined },
  context: Context,
): Promise<CallResult> {
  const state = readRequestState(context.mcpReq.requestState())
  // A call runs with the sender's rights. An answer continues an abandoned run only with `mayContinue`.
  const grant = state === undefined ? { ...connection.grant, mayContinue: true } : connection.grant
  const served = { ...connection, grant }
  const { sdk, desk, options } = served
  const tool = options.tools.get(params.name)
  if (!tool) {
    const names = [...options.tools.keys()].join(', ')
    throw invalidParamsError(sdk, `There is no tool '${params.name}'. The tools are: ${names}.`)
  }
  const key = readKey(context, sdk)
  let id: string
  try {
    const call = { agent: tool.name, key, ...(await tool.read(params.arguments)) }
    const task = state === undefined ? await desk.begin(call, grant) : await desk.recall(state, call, grant)
    if (task === null) throw unknownTaskError(sdk, state?.task ?? '')
    ;({ id } = task)
  } catch (error) {
    if (!(error instanceof StatewrightError) || !hasCode(error, ...mistakes)) throw error
    return { content: [{ type: 'text', text: error.message }], isError: true }
  }
  if (tool.mayBeTask && hasTasks(served, context)) {
    const task = await desk.look(id, grant, { continues: true })
    if (task === null) throw unknownTaskError(sdk, id)
    return { resultType: 'task', ...toWireTask(task, options) }
  }
  const { signal } = context.mcpReq
  const stopProgress = sendProgress(desk, id, grant, context)
  try {
    return await settleCall(served, server, id, context)
  } finally {
    stopProgress()
    // A client without a session or a key cannot find the task again.
    const isLost = signal.aborted && key === undefined && params.arguments?.['session'] === undefined
    const task = isLost ? await desk.look(id, grant, { continues: false }) : null
    if (task) await desk.cancel(task, grant, 'The client has disconnected.')
  }
}

/** Runs a call without tasks until it ends, or until the client has to be asked. */
async function settleCall(
  served: ServedConnection,
  server: ServerSdk.Server,
  id: string,
  context: Context,
): Promise<CallResult> {
  const { sdk, desk, options, grant } = served
  const { signal, inputResponses } = context.mcpReq
  let task = await desk.settle(id, grant, signal)
  if (task === null) throw unknownTaskError(sdk, id)
  let faults = new Map<string, string>()
  if (task.status === 'input_required' && inputResponses !== undefined) {
    const answered = await desk.answer(task, inputResponses, grant)
    if (answered.left.size > 0) return describeWaiting(task, options)
    ;({ faults } = answered)
    task = (await desk.settle(id, grant, signal)) ?? task
  }
  if (task.result !== null) return { ...task.result }
  const inputRequests = canAsk(served, server, context) ? createInputRequests(task, faults) : null
  if (inputRequests === null) return describeWaiting(task, options)
  const requestState = JSON.stringify({ task: task.id, seal: task.seal })
  return { resultType: 'input_required', inputRequests, requestState }
}

/** Creates input requests, or returns null if the questions do not fit forms. */
function createInputRequests(
  { questions }: StandingTask,
  faults?: ReadonlyMap<string, string>,
): Record<string, unknown> | null {
  const shown = questions.filter(({ fitsForm }) => fitsForm)
  const toEntry = (question: Question) => [question.key, toInputRequest(question, faults?.get(question.key))]
  return shown.length === 0 ? null : Object.fromEntries(shown.map(toEntry))
}

function addTaskMethods(server: ServerSdk.Server, served: ServedConnection): void {
  const { sdk, desk, grant } = served
  const withTask = async (
    context: Context,
    { taskId }: { taskId: string },
    act: (task: StandingTask) => Promise<Record<string, unknown>>,
    continues = false,
  ): Promise<Record<string, unknown>> => {
    if (!hasTasks(served, context))
      throw new sdk.MissingRequiredClientCapabilityError(
        { requiredCapabilities: { extensions: { [tasksExtension]: {} } } },
        `Declare the extension ${tasksExtension} in the client capabilities of the request.`,
      )
    try {
      const task = await desk.look(taskId, grant, { continues })
      if (task === null) throw unknownTaskError(sdk, taskId)
      return await act(task)
    } catch (error) {
      throw toProtocolError(served, error)
    }
  }
  server.setRequestHandler('tasks/get', { params: taskParams.get }, (params, context) =>
    withTask(context, params, (task) => Promise.resolve(toDetailedTask(task, served, context)), true),
  )
  server.setRequestHandler('tasks/update', { params: taskParams.update }, (params, context) =>
    withTask(context, params, async (task) => {
      // The SDK separates a client's answers from the other parameters.
      const responses = params.inputResponses ?? context.mcpReq.inputResponses
      if (responses === undefined)
        throw invalidParamsError(sdk, 'tasks/update needs the object inputResponses.')
      const { faults } = await desk.answer(task, responses, grant)
      const [fault] = faults
      if (fault) throw invalidParamsError(sdk, `inputResponses['${fault[0]}']: ${fault[1]}`)
      return {}
    }),
  )
  server.setRequestHandler('tasks/cancel', { params: taskParams.get }, (params, context) =>
    withTask(context, params, async (task) => {
      await desk.cancel(task, grant)
      return {}
    }),
  )
}

function toWireTask(
  { id, status, about, createdAt, updatedAt }: StandingTask,
  { pollMs }: CheckedOptions,
): Record<string, unknown> {
  return {
    taskId: id,
    status,
    statusMessage: about.length > longestAbout ? `${about.slice(0, longestAbout)}…` : about,
    createdAt: new Date(createdAt).toISOString(),
    lastUpdatedAt: new Date(updatedAt).toISOString(),
    // Sessions are kept until the app deletes them.
    ttlMs: null,
    pollIntervalMs: pollMs,
  }
}

const longestAbout = 4000

function toDetailedTask(
  current: StandingTask,
  served: ServedConnection,
  context: Context,
): Record<string, unknown> {
  const { status, result } = current
  const task = toWireTask(current, served.options)
  if (status === 'completed') return { ...task, result: { resultType: 'complete', ...result } }
  if (status !== 'input_required') return task
  // Without forms, a person answers elsewhere while the client keeps polling.
  const inputRequests = canElicit(getDeclared(context)) ? createInputRequests(current) : null
  return { ...task, ...(inputRequests === null ? { status: 'working' } : { inputRequests }) }
}

/** The capabilities that a client of the 2026 revision declares in each request. */
function getDeclared({ mcpReq }: Context): ServerSdk.ClientCapabilities | undefined {
  const envelope = mcpReq.envelope as Record<string, unknown> | undefined
  return envelope?.['io.modelcontextprotocol/clientCapabilities'] as ServerSdk.ClientCapabilities | undefined
}

function hasTasks({ era }: ServedConnection, context: Context): boolean {
  return era === 'modern' && getDeclared(context)?.extensions?.[tasksExtension] !== undefined
}

/** In the 2025 revisions, clients declare their capabilities only over a connection. */
function canAsk({ era }: ServedConnection, server: ServerSdk.Server, context: Context): boolean {
  return canElicit(era === 'modern' ? getDeclared(context) : server.getClientCapabilities())
}

/** An empty `elicitation: {}` means forms. */
function canElicit(declared: ServerSdk.ClientCapabilities | undefined): boolean {
  const elicitation = declared?.elicitation
  if (!elicitation) return false
  return elicitation.form !== undefined || Object.keys(elicitation).length === 0
}

function readKey({ mcpReq }: Context, sdk: typeof ServerSdk): string | undefined {
  const key = mcpReq['_meta']?.[keyName]
  if (key === undefined || typeof key === 'string') return key
  throw invalidParamsError(sdk, `_meta["${keyName}"] must be a string.`)
}

function readRequestState(state: unknown): CallState | undefined {
  if (state === undefined) return undefined
  const parsed = typeof state === 'string' ? parseJsonOr(state, null) : null
  // No task has an empty id.
  return { task: readText(parsed, 'task'), seal: readText(parsed, 'seal') }
}

/** The codes of errors that the client's model can correct. */
const mistakes = [
  'invalid_input',
  'invalid_session',
  'session_in_use',
  'key_reused',
  'other_call',
  'sub_agent_session',
] as const

function unknownTaskError(sdk: typeof ServerSdk, id: string): Error {
  return invalidParamsError(sdk, `There is no task '${id}'.`)
}

function invalidParamsError(sdk: typeof ServerSdk, message: string): Error {
  return new sdk.ProtocolError(sdk.ProtocolErrorCode.InvalidParams, message)
}

/** Converts an error for the client, which receives a sentence and a code. The app receives the error itself. */
function toProtocolError({ sdk, options }: ServedConnection, error: unknown): Error {
  if (error instanceof sdk.ProtocolError) return error
  options.onError(error)
  const isTyped = error instanceof StatewrightError
  const reason = isTyped ? error.code : 'internal'
  const again = isTyped && error.retryable ? ' Try again.' : ''
  const message = `The server failed.${again} (${reason})`
  return new sdk.ProtocolError(sdk.ProtocolErrorCode.InternalError, message, { reason })
}

/** The values of `inputResponses` are validated question by question. */
const taskParams = {
  get: z.object({ taskId: z.string() }),
  update: z.object({ taskId: z.string(), inputResponses: z.record(z.string(), z.unknown()).optional() }),
}

/** Sends progress notifications if the client requests them. Returns the function that stops them. */
function sendProgress(
  desk: TaskDesk,
  id: string,
  grant: AccessGrant,
  { mcpReq }: ServerSdk.ServerContext,
): () => void {
  const token = mcpReq['_meta']?.progressToken
  const stop = new AbortController()
  if (token === undefined) return () => undefined
  const send = async (): Promise<void> => {
    let progress = 0
    for await (const message of desk.follow(id, grant, stop.signal)) {
      progress += 1
      const params = { progressToken: token, progress, message }
      await mcpReq.notify({ method: 'notifications/progress', params })
    }
  }
  // Progress is optional, and the result is sent in any case.
  send().catch(() => undefined)
  return () => stop.abort()
}

/** The calling model reads this, so it contains a command for answering only if the app configures one. */
function describeWaiting(
  { id, named, session, status, about, questions }: StandingTask,
  { answerUrl, answerCommand }: CheckedOptions,
): ToolResult {
  const again = `Call this tool again with the same arguments and the session '${named}'`
  const where = [
    ...(answerUrl === undefined ? [] : [answerUrl(id)]),
    ...(answerCommand === undefined ? [] : questions.map((one) => formatAnswer(answerCommand, session, one))),
  ]
  const how =
    where.length > 0
      ? `A person must answer it here:\n${where.join('\n')}`
      : 'A person, not you, must answer it: in the app that runs this agent, or on its server with the command\nstatewright send.'
  const text =
    status === 'input_required'
      ? `The agent is waiting for a person.\n${about}\n${how}\n${again} to get the answer.`
      : `The agent is still working. ${about} ${again}.`
  const meta = { 'statewright/session': named, 'statewright/state': status }
  return { content: [{ type: 'text', text }], isError: false, _meta: meta }
}

function formatAnswer(command: string, session: string, question: Question): string {
  if (question.kind === 'pause') return `${command} ${session} resume`
  const { callId, fingerprint, needs } = question.call
  const name = `${callId}@${fingerprint}`
  const word = `${name.startsWith('-') ? '-- ' : ''}${quoteShellWord(name)}`
  if (needs === 'approval') return `${command} ${session} approve ${word}`
  const value = needs === 'client' ? '"RESULT"' : '{"action":"accept","content":{}}'
  return `${command} ${session} tool-output ${word} ${quoteShellWord(value)}`
}
