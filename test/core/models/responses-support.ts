import type { JsonObject } from '../../../machines/agent/json.js'
import type { Message } from '../../../machines/agent/messages.js'
import {
  openaiResponses,
  type OpenAIResponsesOptions,
} from '../../../src/core/models/openai/openai-provider.js'
import { type ModelRequest } from '../../../src/core/models/provider.js'
import { failureOf } from './failure-of.js'
import { type Answer, events, json, serve } from './server.js'

export const user = (content: string, id = 'u'): Message => ({ id, createdAt: 1, role: 'user', content })
export const question: ModelRequest = {
  instructions: 'Be brief.',
  messages: [user('hi')],
  nudges: [],
  tools: [],
  sampling: {},
  extraBody: {},
  stream: true,
}
export const local = (baseURL: string, options: Partial<OpenAIResponsesOptions> = {}) =>
  openaiResponses({ model: 'm', apiKey: 'key-12345', baseURL, provider: 'p', ...options })

export async function ask(
  answer: Answer,
  request: Partial<ModelRequest> = {},
  options: Partial<OpenAIResponsesOptions> = {},
) {
  await using server = await serve(answer)
  const shown = { text: '', reasoning: '', warnings: [] as string[] }
  const response = await local(server.baseURL, options).request(
    { ...question, ...request },
    {
      signal: new AbortController().signal,
      onDelta: (text, reasoning) => {
        shown.text += text
        shown.reasoning += reasoning
      },
      onActivity: () => undefined,
      onWarning: (code, message) => void shown.warnings.push(`${code}: ${message}`),
    },
  )
  return { response, shown, sent: server.requests[0]?.body as JsonObject }
}

export const failing = (answer: Answer, request: Partial<ModelRequest> = {}) =>
  failureOf(ask(answer, request))

export const added = (output_index: number, item: object) => ({
  type: 'response.output_item.added',
  output_index,
  item,
})
export const done = (output_index: number, item: object) => ({
  type: 'response.output_item.done',
  output_index,
  item,
})
export const delta = (output_index: number, text: string, item_id = 'any') => ({
  type: 'response.output_text.delta',
  output_index,
  item_id,
  content_index: 0,
  delta: text,
})
export const words = (text: string, more: object = {}) => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text, annotations: [] }],
  ...more,
})
export const call = (call_id: string, input = '{}', more: object = {}) => ({
  id: `fc_${call_id}`,
  type: 'function_call',
  status: 'completed',
  call_id,
  name: 'look',
  arguments: input,
  ...more,
})
export const thought = (encrypted_content: string | null = 'gAAA', more: object = {}) => ({
  id: 'rs_1',
  type: 'reasoning',
  summary: [],
  ...(encrypted_content !== null && { encrypted_content }),
  ...more,
})
export const usage = { input_tokens: 3, output_tokens: 2, total_tokens: 5 }
export const whole = (output: object[], more: object = {}) => ({
  object: 'response',
  status: 'completed',
  model: 'm-1',
  output,
  usage,
  error: null,
  ...more,
})
export const completed = (output: object[] = [], more: object = {}) => ({
  type: 'response.completed',
  response: whole(output, more),
})
/** A complete answer, as a document and as a stream with one event. */
export const both: [string, (output: object[], more?: object) => Answer][] = [
  ['whole', (output, more) => json(200, whole(output, more))],
  ['streamed', (output, more) => events(completed(output, more))],
]
