import type { Answer, EncodedStream, ProviderApi } from './planned-response.js'
import { chatRequestSchema, parseRequest } from './chat-request.js'

export const toOpenAIError: ProviderApi['toError'] = (error, status) => ({
  error: status === 200 ? error : { ...getDefaultError(status), ...error },
})

export const chatApi: ProviderApi = {
  name: 'chat',
  idPrefix: 'chatcmpl-rehearsal-',
  readRequest: (sent) => parseRequest(chatRequestSchema, sent),
  listProblems: () => [],
  formatRefusal: ({ body }) => body,
  toBody: toCompletion,
  toStream,
  toError: toOpenAIError,
}

/** OpenAI's usual error for a status, used if the turn sets none. */
function getDefaultError(status: number) {
  if (status === 429)
    return createErrorObject('requests', 'rate_limit_exceeded', 'Rate limit reached. Try again later.')
  if (status === 401)
    return createErrorObject('invalid_request_error', 'invalid_api_key', 'Incorrect API key provided.')
  if (status < 500) return createErrorObject('invalid_request_error', null, 'The request is invalid.')
  return createErrorObject('server_error', null, 'The server had an error while processing the request.')
}

function createErrorObject(type: string, code: string | null, message: string) {
  return { message, type, param: null, code }
}

function toCompletion(answer: Answer) {
  const { text, reasoning, refusal = null, calls, hasFinish } = answer
  const message = {
    role: 'assistant',
    content: text ?? (calls.length > 0 || refusal !== null ? null : ''),
    refusal,
    ...(reasoning !== undefined && { reasoning_content: reasoning }),
    ...(calls.length > 0 && { tool_calls: calls.map((call) => toToolCall(call, call.arguments)) }),
  }
  const finish_reason = hasFinish ? getFinishReason(answer) : null
  const usage = toUsage(answer)
  return {
    ...createHead(answer, 'chat.completion'),
    choices: [{ index: 0, message, logprobs: null, finish_reason }],
    ...(usage && { usage }),
  }
}

function toStream(answer: Answer): EncodedStream {
  const { text, reasoning, refusal, calls, split, hasFinish, hasDone } = answer
  const includeUsage = answer.request.stream_options?.include_usage === true
  const head = createHead(answer, 'chat.completion.chunk')
  const chunk = (delta: object, finish_reason: string | null = null) => ({
    ...head,
    choices: [{ index: 0, delta, logprobs: null, finish_reason }],
    ...(includeUsage && { usage: null }),
  })
  const deltas: object[] = [
    ...split(reasoning).map((piece) => ({ reasoning_content: piece })),
    ...split(text).map((piece) => ({ content: piece })),
    ...split(refusal).map((piece) => ({ refusal: piece })),
    ...calls.flatMap((call, index) => [
      { tool_calls: [{ index, ...toToolCall(call, '') }] },
      ...split(call.arguments).map((piece) => ({ tool_calls: [{ index, function: { arguments: piece } }] })),
    ]),
  ]
  const usage = toUsage(answer)
  return {
    opening: [chunk({ role: 'assistant', content: '' })],
    deltas: deltas.map((delta) => chunk(delta)),
    end: [
      ...(hasFinish ? [chunk({}, getFinishReason(answer))] : []),
      ...(usage && includeUsage && (hasFinish || hasDone) ? [{ ...head, choices: [], usage }] : []),
      ...(hasDone ? ['[DONE]'] : []),
    ],
    toFailure: (error) => ({ error }),
  }
}

function createHead({ id, created, model }: Answer, object: string) {
  return { id, object, created, model, system_fingerprint: 'fp_rehearsal' }
}

function toToolCall({ id, name }: Answer['calls'][number], text: string) {
  return { id, type: 'function', function: { name, arguments: text } }
}

function getFinishReason({ finishReason, calls }: Answer): string {
  return finishReason ?? (calls.length > 0 ? 'tool_calls' : 'stop')
}

function toUsage({ usage }: Answer) {
  if (usage === null) return null
  const { input, output, cached, cacheWrite, reasoning } = usage
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: {
      cached_tokens: cached,
      ...(cacheWrite > 0 && { cache_write_tokens: cacheWrite }),
    },
    completion_tokens_details: { reasoning_tokens: reasoning },
  }
}
