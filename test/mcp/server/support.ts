import { Client, type ClientCapabilities, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { ModelProvider, ModelRequest } from '../../../src/index.js'
import type { ModelResponse } from '../../../machines/agent/model-response.js'
import { plainAnswer } from '../../support/manual-model.js'
import type { McpHandler } from '../../../src/mcp/server/index.js'

/** The model's next text or tool calls, based on its input. */
export type Script = (
  request: ModelRequest,
) => string | { name: string; arguments: string }[] | Promise<string>

/** A scripted model that counts its requests. */
export function scriptedModel(script: Script): ModelProvider & { requests: number } {
  const model = {
    provider: 'script',
    model: 'script-1',
    requests: 0,
    request: async (request: ModelRequest): Promise<ModelResponse> => {
      model.requests += 1
      const response = await script(request)
      if (typeof response === 'string') return { ...plainAnswer, text: response }
      const toolCalls = response.map((call, i) => ({
        id: `call_${model.requests}_${i}`,
        type: 'function' as const,
        function: call,
      }))
      return { ...plainAnswer, text: '', toolCalls, finishReason: 'tool_calls' }
    },
  }
  return model
}

/** The last tool result, if it is the model's latest input. */
export function lastResult({ messages }: ModelRequest): string | undefined {
  const last = messages.at(-1)
  return last?.role === 'tool' ? last.content : undefined
}

const connected: Client[] = []

afterEach(async () => {
  await Promise.all(connected.splice(0).map((client) => client.close()))
})

interface Connecting {
  era?: 'legacy' | 'auto'
  user?: string
  capabilities?: ClientCapabilities
  /** Answers elicitations. */
  answer?: (params: Record<string, unknown>) => Record<string, unknown>
}

/** A client of the official SDK. Its requests go to the handler without a socket. */
export async function connect(
  handler: McpHandler,
  { era = 'auto', user = 'ann', capabilities = {}, answer }: Connecting = {},
): Promise<Client> {
  const client = new Client(
    { name: 'test', version: '1' },
    {
      versionNegotiation: { mode: era },
      capabilities: { ...capabilities, ...(answer && { elicitation: { form: {} } }) },
    },
  )
  if (answer)
    client.setRequestHandler('elicitation/create', (request) =>
      Promise.resolve(answer(request.params as Record<string, unknown>) as { action: 'accept' }),
    )
  const transport = new StreamableHTTPClientTransport(new URL('http://localhost/mcp'), {
    fetch: (url, init) => {
      const headers = new Headers(init?.headers)
      headers.set('x-user', user)
      return handler(new Request(url, { ...init, headers } as RequestInit))
    },
  })
  await client.connect(transport)
  connected.push(client)
  return client
}

export const tasks = 'io.modelcontextprotocol/tasks'

export interface RpcReply {
  result?: Record<string, unknown> & { taskId: string; status: string }
  error?: { code: number; message: string; data?: unknown }
}

/** A raw request of the 2026 revision, because the SDK client has no tasks. */
export async function rpc(
  handler: McpHandler,
  method: string,
  params: Record<string, unknown> = {},
  {
    user = 'ann',
    capabilities = { elicitation: { form: {} }, extensions: { [tasks]: {} } },
    meta = {},
  }: { user?: string; capabilities?: object; meta?: object } = {},
): Promise<RpcReply> {
  const name = params['taskId'] ?? params['name']
  const response = await handler(
    new Request('http://localhost/mcp', {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': method,
        ...(typeof name === 'string' && { 'mcp-name': name }),
        'x-user': user,
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method,
        params: {
          ...params,
          _meta: {
            'io.modelcontextprotocol/protocolVersion': '2026-07-28',
            'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1' },
            'io.modelcontextprotocol/clientCapabilities': capabilities,
            ...meta,
          },
        },
      }),
    }),
  )
  return (await response.json()) as RpcReply
}

/** Polls a task until it reaches one of these states. */
export async function awaitTask(
  handler: McpHandler,
  taskId: string,
  states: readonly string[],
  options?: Parameters<typeof rpc>[3],
): Promise<NonNullable<RpcReply['result']>> {
  for (;;) {
    const { result, error } = await rpc(handler, 'tasks/get', { taskId }, options)
    if (!result) throw new Error(`tasks/get: ${JSON.stringify(error)}`)
    if (states.includes(result.status)) return result
    await new Promise((resolve) => setImmediate(resolve))
  }
}
