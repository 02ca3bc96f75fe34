import type { JSONRPCMessage, RequestId, Transport } from '@modelcontextprotocol/client'
import type { JsonObject } from '../../../machines/agent/json.js'
import { readWaitMs } from '../../core/base/values.js'
import { readProperty, readText } from '../../core/base/json.js'

/** The tasks extension in revision 2026-07-28. */
export const tasksExtension = 'io.modelcontextprotocol/tasks'

/** Where to store a task in a result, so that the SDK accepts it. */
const taskKey = 'statewright/task'

/** Receives each answer first. The SDK rejects an answer that is a task, so that moves to a result's `_meta`. */
export function watchAnswers(transport: Transport, onAnswer?: (id: RequestId) => void): void {
  let reader: Transport['onmessage']
  Object.defineProperty(transport, 'onmessage', {
    configurable: true,
    get: () => reader,
    set: (next: Transport['onmessage']) => {
      reader =
        next &&
        ((message, extra) => {
          if (!('method' in message) && message.id !== undefined) onAnswer?.(message.id)
          next(toReadable(message), extra)
        })
    },
  })
}

function toReadable(message: JSONRPCMessage): JSONRPCMessage {
  if (!('result' in message) || message.result['resultType'] !== 'task') return message
  const { _meta: meta, resultType: _type, ...task } = message.result
  return { ...message, result: { resultType: 'complete', content: [], _meta: { ...meta, [taskKey]: task } } }
}

export type TaskState = ReturnType<typeof readTask>

export function findTask(result: JsonObject): TaskState | undefined {
  const task = readProperty(readProperty(result, '_meta'), taskKey) ?? result['task']
  const state = readTask(task)
  return state.id === '' ? undefined : state
}

/** Minimum, maximum and default milliseconds between two polls. The server's value is limited accordingly. */
const [leastPollMs, mostPollMs, usualPollMs] = [50, 60_000, 1_000]

export function readTask(task: unknown) {
  const text = (key: string): string | undefined => readText(task, key) || undefined
  const object = (key: string): JsonObject | undefined => {
    const value = readProperty(task, key)
    return typeof value === 'object' && value !== null ? (value as JsonObject) : undefined
  }
  const poll = readProperty(task, 'pollIntervalMs') ?? readProperty(task, 'pollInterval')
  const ttl = readProperty(task, 'ttlMs') ?? readProperty(task, 'ttl')
  return {
    id: readText(task, 'taskId'),
    status: readText(task, 'status'),
    message: text('statusMessage'),
    pollMs: Math.min(mostPollMs, Math.max(leastPollMs, readWaitMs(poll) ?? usualPollMs)),
    /** The lifetime of the task in milliseconds from its creation, or null for no limit. */
    ttlMs: Number.isFinite(ttl) && Number(ttl) > 0 ? Number(ttl) : null,
    updatedAt: text('lastUpdatedAt'),
    /** Only the extension includes it. */
    result: object('result'),
    error: readProperty(task, 'error'),
    inputRequests: object('inputRequests'),
  }
}
