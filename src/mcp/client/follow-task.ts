import type { JsonObject } from '../../../machines/agent/json.js'
import { omitUndefined } from '../../../guards/lib/json.js'
import { createNap, whenAborted, limitTime } from '../../core/base/abort.js'
import { readElapsed, systemClock } from '../../core/base/clock.js'
import { describeError } from '../../core/base/errors.js'
import { readProperty, readText } from '../../core/base/json.js'
import { ToolError } from '../../core/tools/tool-error.js'
import type { McpCall, McpConnection } from './mcp-connection.js'
import { createSilenceError, doubtHint, SessionExpiredError } from './server-wire.js'
import { defaultTimeoutMs } from './mcp-options.js'
import { quoteText } from './plain-text.js'
import { readTask, type TaskState } from './task-wire.js'

/** Maximum consecutive requests that do not reach the server. */
const maxFailures = 6

const cancelMs = 5_000

/** How often a server may repeat answered questions, because it may need time to accept an answer. */
const maxStaleLooks = 20

export interface TaskFollowing {
  server: string
  call: McpCall
  timeoutMs: number
  /** Returns a new connection if the old one is lost. */
  connect: () => Promise<McpConnection>
  keep: (work: Promise<unknown>) => void
}

/**
 * Polls a task until it ends or requests input, even across reconnects. The task is cancelled when its call is
 * cancelled or a limit is reached, but not when another process continues the run.
 * @throws an error for the model
 */
export async function followTask(
  id: string,
  { server, call, timeoutMs: silenceMs, connect, keep }: TaskFollowing,
  first?: TaskState,
): Promise<JsonObject> {
  const { signal, onProgress } = call
  const name = `The MCP server '${server}'`
  const limit = createTaskLimit(server, silenceMs)
  let lastReport = ''
  const reportState = (state: TaskState): void => {
    limit.note(state)
    const report = { status: state.status, ...omitUndefined({ message: state.message }) }
    if (JSON.stringify(report) !== lastReport) onProgress(report)
    lastReport = JSON.stringify(report)
  }

  /** Sends a request. Reconnects to an unreachable server, because the task survives on the server. */
  async function ask(
    method: string,
    { params = {}, timeoutMs }: { params?: JsonObject; timeoutMs?: number } = {},
  ): Promise<JsonObject> {
    for (let failures = 1; ; failures += 1) {
      signal.throwIfAborted()
      try {
        const connection = await connect()
        return await connection.ask(method, { taskId: id, ...params }, { signal, timeoutMs })
      } catch (error) {
        if (signal.aborted) throw error
        if (!isAway(error) || failures === maxFailures)
          throw new ToolError('failed', `${describeError(error)} ${doubtHint}`, { cause: error })
      }
      await createNap(systemClock).sleep(200 * 2 ** failures, signal)
    }
  }

  async function giveAnswers(inputResponses: object): Promise<string | undefined> {
    try {
      await ask('tasks/update', { params: { inputResponses } as JsonObject })
      return undefined
    } catch (error) {
      signal.throwIfAborted()
      return describeError((error as Error).cause ?? error)
    }
  }

  /** The extension includes the outcome, but the older form needs a separate request. */
  async function readOutcome({ status, result, error }: TaskState): Promise<JsonObject> {
    if (result !== undefined) return result
    if (status !== 'failed' || error === undefined) return ask('tasks/result')
    const words = readText(error, 'message')
    throw new ToolError('failed', `${name}: the task failed. ${words === '' ? '' : quoteText(words)}`)
  }

  const cancelTask = async (): Promise<void> => {
    const connection = await connect()
    await limitTime({ ms: cancelMs }, connection.ask('tasks/cancel', { taskId: id }))
  }
  const stop = whenAborted(signal, () => {
    if (readProperty(signal.reason, 'name') !== 'LeftError') keep(cancelTask())
  })
  try {
    if (first) reportState(first)
    /** Questions that the server may repeat until it has accepted the answers. */
    let answers = call.continuation.inputResponses ?? {}
    const refusal = Object.keys(answers).length > 0 ? await giveAnswers(answers) : undefined
    // The response that created the task has no result.
    if (first?.status === 'working') await createNap(systemClock).sleep(limit.cut(first.pollMs), signal)
    for (let looks = 1; ; looks += 1) {
      signal.throwIfAborted()
      const state = readTask(await ask('tasks/get'))
      const { status } = state
      reportState(state)
      if (status === 'completed' || status === 'failed') return await readOutcome(state)
      if (status === 'cancelled') throw new ToolError('failed', `${name} has cancelled the task.`)
      if (status === 'input_required') {
        const { inputRequests } = state
        // In the older form, the server requests input over the connection while the client requests the result.
        if (inputRequests === undefined) return await ask('tasks/result', { timeoutMs: 0 })
        const isNew = Object.keys(inputRequests).some((key) => !Object.hasOwn(answers, key))
        // The person is asked again, up to the limit that applies to every call.
        if (isNew || refusal !== undefined || looks >= maxStaleLooks) {
          const again = explainAgain(inputRequests, answers, refusal)
          return { resultType: 'input_required', inputRequests: again }
        }
      } else answers = {}
      const fault = limit.findFault()
      if (fault !== undefined) {
        keep(cancelTask())
        throw fault
      }
      await createNap(systemClock).sleep(limit.cut(state.pollMs), signal)
    }
  } finally {
    stop()
  }
}

const getElapsed = (): number => readElapsed(systemClock)

/** Limits a task by its `ttl`, and by `timeoutMs` without a change. */
function createTaskLimit(server: string, timeoutMs: number) {
  const begin = getElapsed()
  let changedAt = begin
  let last = ''
  let ttlMs: number | null = null
  /** The longest time without a change. 0 = off. */
  const getSilenceMs = (): number => (ttlMs !== null && timeoutMs === defaultTimeoutMs ? 0 : timeoutMs)
  const getLeft = (): { silence: number; ttl: number } => ({
    silence: getSilenceMs() === 0 ? Infinity : changedAt + getSilenceMs() - getElapsed(),
    ttl: ttlMs === null ? Infinity : begin + ttlMs - getElapsed(),
  })
  return {
    note(state: TaskState): void {
      const signs = JSON.stringify([state.status, state.message, state.updatedAt])
      if (signs !== last) changedAt = getElapsed()
      last = signs
      ttlMs = state.ttlMs
    },
    cut(pollMs: number): number {
      const { silence, ttl } = getLeft()
      return Math.max(1, Math.min(pollMs, silence, ttl))
    },
    findFault(): ToolError | undefined {
      const { silence, ttl } = getLeft()
      if (silence <= 0) return createSilenceError(server, timeoutMs)
      if (ttl > 0) return undefined
      const words = `The MCP server '${server}' did not finish its task within the ttl of ${ttlMs} ms.`
      return new ToolError('transient', `${words} ${doubtHint}`)
    },
  }
}

function explainAgain(
  inputRequests: JsonObject,
  answers: Readonly<Record<string, unknown>>,
  refusal: string | undefined,
): JsonObject {
  if (refusal === undefined) return inputRequests
  return Object.fromEntries(
    Object.entries(inputRequests).map(([key, request]) => {
      const params = readProperty(request, 'params')
      const message = readProperty(params, 'message')
      if (!Object.hasOwn(answers, key) || typeof message !== 'string') return [key, request]
      const why = `[The previous answer was refused: ${quoteText(refusal)}] ${message}`
      return [key, { ...(request as JsonObject), params: { ...(params as JsonObject), message: why } }]
    }),
  )
}

function isAway(error: unknown): boolean {
  const status = Number(readProperty(error, 'status') ?? 0)
  const isRefused = status === 429 || status >= 500
  return isRefused || error instanceof SessionExpiredError || readProperty(error, 'kind') === 'transient'
}
