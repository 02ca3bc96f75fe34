import type * as ServerSdk from '@modelcontextprotocol/server'
import { describeError, StatewrightError } from '../../core/base/errors.js'
import { parseJsonOr, readText } from '../../core/base/json.js'
import type { AccessGrant } from '../../web/authorize.js'
import { hasCode } from '../../web/error-response.js'
import type { CheckedOptions } from './options.js'
import { type Question, toInputRequest } from './questions.js'
import {
  type CallState,
  openTaskDesk,
  type StandingTask,
  type TaskDesk,
  type TaskHost,
  type ToolResult,
} from './task-desk.js'
import { omitUndefined } from '../../../guards/lib/json.js'
import { z } from 'zod'
import { quoteShellWord } from '../../core/format/shell-words.js'

const tasksExtension = 'io.modelcontextprotocol/tasks'
/** A key in a call's `_meta`. The same key always refers to the same task. */
const keyName = 'statewright/key'

/** The codes of errors that the client's model can correct. */
const mistakes = [
  'invalid_input',
  'invalid_session',
  'session_in_use',
  'key_reused',
  'other_call',
  'sub_agent_session',
]

type Context = ServerSdk.ServerContext
type CallResult = Record<string, unknown> | ToolResult

/**
 * Creates a stateless SDK server on top of the tasks. `grant` has the rights of the sender. The 2026 revision (`modern`)
 * has tasks and `input_required`. In earlier revisions, the client is asked over its connection.
 */
export function createProtocolServer(
  sdk: typeof ServerSdk,
  host: TaskHost,
  grant: AccessGrant,
  era: 'legacy' | 'modern',
): ServerSdk.Server {
  const { options } = host
  const { info, instructions, tools } = options
  const isModern = era === 'modern'
  const extensions = { extensions: { [tasksExtension]: {} } }
  // Tasks are methods of an extension, and this class registers handlers by method.
  const server = new sdk.Server(info, {
    capabilities: { tools: {}, ...(isModern && extensions) },
    ...omitUndefined({ instructions }),
    // People may take a long time to answer, and the agent's limits apply to the number of questions.
    inputRequired: { roundTimeoutMs: 86_400_000, maxRounds: 10_000 },
  })

  const invalidParamsError = (message: string): Error =>
    new sdk.ProtocolError(sdk.ProtocolErrorCode.InvalidParams, message)
  const unknownTaskError = (id: string): Error => invalidParamsError(`There is no task '${id}'.`)

  /** Converts an error for the client, which receives a sentence and a code. The app receives the error itself. */
  async function translateErrors<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work()
    } catch (error) {
      if (error instanceof sdk.ProtocolError) throw error
      options.onError(error)
      const isTyped = error instanceof StatewrightError
      const reason = isTyped ? error.code : 'internal'
      const again = isTyped && error.retryable ? ' Try again.' : ''
      const message = `The server failed.${again} (${reason})`
      throw new sdk.ProtocolError(sdk.ProtocolErrorCode.InternalError, message, { reason })
    }
  }

  const hasTasks = (context: Context): boolean =>
    isModern && getDeclared(context)?.extensions?.[tasksExtension] !== undefined

  /** Handles a tool call. An unknown tool is a protocol error. Invalid arguments are reported to the client's model. */
  async function callTool(
    params: { name: string; arguments?: Record<string, unknown> | undefined },
    context: Context,
  ): Promise<CallResult> {
    const { mcpReq } = context
    const state = readRequestState(mcpReq.requestState())
    // A call runs with the sender's rights. An answer continues an abandoned run only with `mayContinue`.
    const desk = openTaskDesk(host, state === undefined ? { ...grant, mayContinue: true } : grant)
    const tool = tools.get(params.name)
    if (!tool) {
      const names = [...tools.keys()].join(', ')
      throw invalidParamsError(`There is no tool '${params.name}'. The tools are: ${names}.`)
    }
    const key = mcpReq['_meta']?.[keyName]
    if (key !== undefined && typeof key !== 'string')
      throw invalidParamsError(`_meta["${keyName}"] must be a string.`)
    let id: string
    try {
      const call = { agent: tool.name, key, ...(await tool.read(params.arguments)) }
      const task =
        state === undefined ? await desk.begin(call, mcpReq.signal) : await desk.recall(state, call)
      if (task === null) throw unknownTaskError(state?.task ?? '')
      ;({ id } = task)
    } catch (error) {
      if (!hasCode(error, ...mistakes)) throw error
      return { content: [{ type: 'text', text: describeError(error) }], isError: true }
    }
    if (tool.mayBeTask && hasTasks(context)) {
      const task = await desk.look(id, { continues: true })
      if (task === null) throw unknownTaskError(id)
      return { resultType: 'task', ...toWireTask(task, options) }
    }
    try {
      return await settleCall(desk, id, context)
    } finally {
      // A client without a session or a key cannot find the task again.
      const isLost = mcpReq.signal.aborted && key === undefined && params.arguments?.['session'] === undefined
      const task = isLost ? await desk.look(id, { continues: false }) : null
      if (task) await desk.cancel(task, 'The client has disconnected.')
    }
  }

  async function settleCall(desk: TaskDesk, id: string, context: Context): Promise<CallResult> {
    const { signal, inputResponses } = context.mcpReq
    const report = createProgressReport(context)
    let task = await desk.settle(id, signal, report)
    if (task === null) throw unknownTaskError(id)
    let faults = new Map<string, string>()
    if (task.status === 'input_required' && inputResponses !== undefined) {
      const answered = await desk.answer(task, inputResponses)
      if (answered.left.size > 0) return describeWaiting(task, options)
      ;({ faults } = answered)
      task = (await desk.settle(id, signal, report)) ?? task
    }
    if (task.result !== null) return { ...task.result }
    // In the 2025 revisions, clients declare their capabilities only over a connection.
    const declared = isModern ? getDeclared(context) : server.getClientCapabilities()
    const inputRequests = canElicit(declared) ? createInputRequests(task, faults) : null
    if (inputRequests === null) return describeWaiting(task, options)
    const requestState = JSON.stringify({ task: task.id, seal: task.seal })
    return { resultType: 'input_required', inputRequests, requestState }
  }

  server.setRequestHandler('tools/list', () => ({
    tools: [...tools.values()].map(({ name, title, description, inputSchema }) => ({
      name,
      ...omitUndefined({ title }),
      description,
      inputSchema: inputSchema as { type: 'object' },
    })),
  }))
  server.setRequestHandler(
    'tools/call',
    ({ params }, context) =>
      translateErrors(() => callTool(params, context)) as Promise<ServerSdk.CallToolResult>,
  )
  if (!isModern) return server

  const desk = openTaskDesk(host, grant)
  const withTask = async (
    context: Context,
    { taskId }: { taskId: string },
    act: (task: StandingTask) => Record<string, unknown> | Promise<Record<string, unknown>>,
    continues = false,
  ): Promise<Record<string, unknown>> => {
    if (!hasTasks(context))
      throw new sdk.MissingRequiredClientCapabilityError(
        { requiredCapabilities: extensions },
        `Declare the extension ${tasksExtension} in the client capabilities of the request.`,
      )
    return translateErrors(async () => {
      const task = await desk.look(taskId, { continues })
      if (task === null) throw unknownTaskError(taskId)
      return act(task)
    })
  }
  server.setRequestHandler('tasks/get', { params: taskParams.get }, (params, context) =>
    withTask(context, params, (task) => toDetailedTask(task, options, context), true),
  )
  server.setRequestHandler('tasks/update', { params: taskParams.update }, (params, context) =>
    withTask(context, params, async (task) => {
      // The SDK separates a client's answers from the other parameters.
      const responses = params.inputResponses ?? context.mcpReq.inputResponses
      if (responses === undefined) throw invalidParamsError('tasks/update needs the object inputResponses.')
      const [fault] = (await desk.answer(task, responses)).faults
      if (fault) throw invalidParamsError(`inputResponses['${fault[0]}']: ${fault[1]}`)
      return {}
    }),
  )
  server.setRequestHandler('tasks/cancel', { params: taskParams.get }, (params, context) =>
    withTask(context, params, async (task) => {
      await desk.cancel(task)
      return {}
    }),
  )
  return server
}

function createInputRequests(
  { questions }: StandingTask,
  faults?: ReadonlyMap<string, string>,
): Record<string, unknown> | null {
  const shown = questions.filter(({ fitsForm }) => fitsForm)
  const toEntry = (question: Question) => [question.key, toInputRequest(question, faults?.get(question.key))]
  return shown.length === 0 ? null : Object.fromEntries(shown.map(toEntry))
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
  options: CheckedOptions,
  context: Context,
): Record<string, unknown> {
  const { status, result } = current
  const task = toWireTask(current, options)
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

/** An empty `elicitation: {}` means forms. */
function canElicit(declared: ServerSdk.ClientCapabilities | undefined): boolean {
  const elicitation = declared?.elicitation
  if (!elicitation) return false
  return elicitation.form !== undefined || Object.keys(elicitation).length === 0
}

function readRequestState(state: unknown): CallState | undefined {
  if (state === undefined) return undefined
  const parsed = typeof state === 'string' ? parseJsonOr(state, null) : null
  // No task has an empty id.
  return { task: readText(parsed, 'task'), seal: readText(parsed, 'seal') }
}

/** The values of `inputResponses` are validated question by question. */
const taskParams = {
  get: z.object({ taskId: z.string() }),
  update: z.object({ taskId: z.string(), inputResponses: z.record(z.string(), z.unknown()).optional() }),
}

/** Sends a progress notification for each new description, if the client requests them. */
function createProgressReport({ mcpReq }: Context): ((message: string) => void) | undefined {
  const token = mcpReq['_meta']?.progressToken
  if (token === undefined) return undefined
  let last = ''
  let progress = 0
  return (message) => {
    if (message === last) return
    last = message
    progress += 1
    const params = { progressToken: token, progress, message }
    // Progress is optional, and the result is sent in any case.
    mcpReq.notify({ method: 'notifications/progress', params }).catch(() => undefined)
  }
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
