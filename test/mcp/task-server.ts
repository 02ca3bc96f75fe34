import type { ServerResponse } from 'node:http'
import { httpServer, json } from './http-server.js'

/** The two forms of tasks: the extension of 2026-07-28, and the older one of 2025-11-25. */
export type TaskForm = 'extension' | 'older form'
export const taskForms: readonly TaskForm[] = ['extension', 'older form']

interface Task {
  polls: number
  end?: 'failed' | 'cancelled'
  /** The questions it asks before it ends, and the answers received. */
  asks?: object
  answers: unknown[]
}

/** A server whose tool is a task that ends after `polls` polls. A `silent` task never changes. */
interface TaskServerOptions {
  polls?: number
  silent?: boolean
  /** Milliseconds. */
  ttl?: number
}

export async function taskServer(form: TaskForm, { polls = 2, silent = false, ttl }: TaskServerOptions = {}) {
  const tasks = new Map<string, Task>()
  const keys: unknown[] = []
  const cancelled: string[] = []
  const isModern = form === 'extension'
  const more = isModern ? { resultType: 'complete', ttlMs: 0, cacheScope: 'private' } : {}
  const result = (id: string) => ({
    ...(isModern && { resultType: 'complete' }),
    content: [{ type: 'text', text: `The answer of ${id}.` }],
  })
  const toWire = (taskId: string, { polls: count, end, asks, answers }: Task) => {
    const isOver = count >= polls
    const isAsking = asks !== undefined && answers.length === 0
    const status = isAsking ? 'input_required' : isOver ? (end ?? 'completed') : 'working'
    const time = new Date(0).toISOString()
    const task = {
      taskId,
      status,
      statusMessage: `Question ${silent ? 0 : count}.`,
      createdAt: time,
      lastUpdatedAt: time,
    }
    if (!isModern) return { ...task, ttl: ttl ?? null, pollInterval: 50 }
    const outcome = {
      ...(isAsking && { inputRequests: { seat: { method: 'elicitation/create', params: asks } } }),
      ...(status === 'completed' && { result: result(taskId) }),
      ...(status === 'failed' && { error: { code: -32603, message: 'Out of paper.' } }),
    }
    return { ...task, ttlMs: ttl ?? null, pollIntervalMs: 50, ...outcome }
  }
  const hooks = {
    away: 0,
    end: undefined as Task['end'],
    asks: undefined as Task['asks'],
    /** The number of answers it rejects, and its rejection message. */
    refuses: 0,
    refusal: undefined as string | undefined,
  }
  const server = await httpServer(
    (request, response) => {
      const { _meta: meta } = request.params as { _meta?: Record<string, unknown> }
      keys.push(meta?.['statewright/key'])
      const id = `task-${keys.length}`
      const { end, asks } = hooks
      const task: Task = { polls: 0, answers: [], ...(end && { end }), ...(asks && { asks }) }
      tasks.set(id, task)
      const created = toWire(id, task)
      json(response, request, isModern ? { resultType: 'task', ...created } : { task: created })
    },
    (request, response) => {
      const { taskId = '', inputResponses } = (request.params ?? {}) as {
        taskId?: string
        inputResponses?: unknown
      }
      const task = tasks.get(taskId)
      const answer = (value: object): true => {
        json(response, request, { ...more, ...value })
        return true
      }
      if (request.method === 'server/discover' && isModern)
        return answer({
          supportedVersions: ['2026-07-28'],
          capabilities: { tools: {}, extensions: { 'io.modelcontextprotocol/tasks': {} } },
          _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'web', version: '1' } },
        })
      if (request.method === 'initialize')
        return answer({
          protocolVersion: '2025-11-25',
          capabilities: { tools: {}, tasks: { cancel: {}, requests: { tools: { call: {} } } } },
          serverInfo: { name: 'web', version: '1' },
        })
      if (request.method === 'tools/list')
        return answer({
          tools: [{ name: 'go', inputSchema: { type: 'object' }, execution: { taskSupport: 'required' } }],
        })
      if (!request.method.startsWith('tasks/')) return false
      if (hooks.away > 0) {
        hooks.away -= 1
        response.destroy()
        return true
      }
      if (task === undefined) return refuse(response, request.id)
      if (request.method === 'tasks/cancel') cancelled.push(taskId)
      if (request.method === 'tasks/get') task.polls += 1
      if (request.method === 'tasks/update') {
        hooks.refuses -= 1
        if (hooks.refuses < 0) task.answers.push(inputResponses)
        else if (hooks.refusal !== undefined) return refuse(response, request.id, hooks.refusal)
      }
      return answer(request.method === 'tasks/result' ? result(taskId) : toWire(taskId, task))
    },
  )
  return { ...server, tasks, keys, cancelled, hooks }
}

function refuse(response: ServerResponse, id: unknown, message = 'There is no such task.'): true {
  const error = { code: -32602, message }
  response.writeHead(200, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ jsonrpc: '2.0', id, error }))
  return true
}
