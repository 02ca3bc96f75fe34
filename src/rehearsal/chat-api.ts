import type { EncodedStream, Envelope, ProviderApi, TurnEncoder } from './planned-response.js'
import { type ChatRequest, chatRequestSchema, parseRequest } from './chat-request.js'
import type { Turn } from './turn-schema.js'

export const chatApi: ProviderApi = {
  name: 'chat',
  idPrefix: 'chatcmpl-rehearsal-',
  readRequest: (sent) => parseRequest(chatRequestSchema, sent),
  findStrictProblem: () => null,
  formatRefusal: ({ body }) => body,

  createEncoder: (turn, request, envelope) => ({
    encodeBody: () => toCompletion(turn, request, envelope),
    encodeStream: () => toStream(turn, request, envelope),
    encodeError: encodeOpenAIError,
  }),
}

export const encodeOpenAIError: TurnEncoder['encodeError'] = (error, status) => ({
  error: status === 200 ? error : { ...getDefaultError(status), ...error },
})

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

function toCompletion(turn: Turn, request: ChatRequest, envelope: Envelope) {
  const { reasoning, refusal = null } = turn
  const calls = listCalls(turn, envelope)
  const message = {
    role: 'assistant',
    content: turn.text ?? (calls.length > 0 || refusal !== null ? null : ''),
    refusal,
    ...(reasoning !== undefined && { reasoning_content: reasoning }),
    ...(calls.length > 0 && { tool_calls: calls }),
  }
  const finish_reason = isUnfinished(turn) ? null : getFinishReason(turn)
  const usage = toUsage(turn, request)
  return {
    ...createHead(envelope, 'chat.completion'),
    choices: [{ index: 0, message, logprobs: null, finish_reason }],
    ...(usage && { usage }),
  }
}

function toStream(turn: Turn, request: ChatRequest, envelope: Envelope): EncodedStream {
  const includeUsage = request.stream_options?.include_usage === true
  const chunk = (delta: object, finish_reason: string | null = null) => ({
    ...createHead(envelope, 'chat.completion.chunk'),
    choices: [{ index: 0, delta, logprobs: null, finish_reason }],
    ...(includeUsage && { usage: null }),
  })
  const pieces = (text: string | undefined) => splitText(text ?? '', turn.chunkSize ?? 16)
  const deltas: object[] = [
    ...pieces(turn.reasoning).map((piece) => ({ reasoning_content: piece })),
    ...pieces(turn.text).map((piece) => ({ content: piece })),
    ...pieces(turn.refusal).map((piece) => ({ refusal: piece })),
    ...listCalls(turn, envelope).flatMap(({ function: { name, arguments: text }, ...call }, index) => [
      { tool_calls: [{ index, ...call, function: { name, arguments: '' } }] },
      ...pieces(text).map((piece) => ({ tool_calls: [{ index, function: { arguments: piece } }] })),
    ]),
  ]
  const usage = toUsage(turn, request)
  const end: (object | string)[] = []
  if (!isUnfinished(turn)) end.push(chunk({}, getFinishReason(turn)))
  if (usage && includeUsage && turn.endWithout !== 'both') {
    end.push({ ...createHead(envelope, 'chat.completion.chunk'), choices: [], usage })
  }
  if (!isUnclosed(turn)) end.push('[DONE]')
  return {
    opening: [chunk({ role: 'assistant', content: '' })],
    deltas: deltas.map((delta) => chunk(delta)),
    end,
    toFailure: (error) => ({ error }),
  }
}

function createHead({ id, created, model }: Envelope, object: string) {
  return { id, object, created, model, system_fingerprint: 'fp_rehearsal' }
}

export function listCalls({ toolCalls = [] }: Turn, { callPrefix }: Pick<Envelope, 'callPrefix'>) {
  return toolCalls.map(({ id, name, arguments: input = {} }, i) => ({
    id: id ?? `${callPrefix}${i + 1}`,
    type: 'function',
    function: { name, arguments: typeof input === 'string' ? input : JSON.stringify(input) },
  }))
}

function getFinishReason({ finishReason, toolCalls = [] }: Turn): string {
  return finishReason ?? (toolCalls.length > 0 ? 'tool_calls' : 'stop')
}

export function isUnfinished({ endWithout }: Turn): boolean {
  return endWithout === 'finish' || endWithout === 'both'
}

export function isUnclosed({ endWithout }: Turn): boolean {
  return endWithout === 'done' || endWithout === 'both'
}

function toUsage(turn: Turn, request: ChatRequest) {
  if (turn.usage === null) return null
  const { input, output, cached, cacheWrite, reasoning } = countUsage(turn, request)
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

type CountedUsage = Record<'input' | 'output' | 'cached' | 'cacheWrite' | 'reasoning', number>

export function countUsage(turn: Turn, request: ChatRequest): CountedUsage {
  const { cached = 0, cacheWrite = 0, reasoning = 0, ...rest } = turn.usage ?? estimateUsage(turn, request)
  return { ...rest, cached, cacheWrite, reasoning }
}

function estimateUsage(
  { text, reasoning = '', refusal, toolCalls }: Turn,
  { messages, tools }: ChatRequest,
): NonNullable<Turn['usage']> {
  return {
    input: estimateTokens([messages, tools]),
    output: estimateTokens([text, reasoning, refusal, toolCalls]),
    reasoning: estimateTokens([reasoning]),
  }
}

/** Counts four characters of JSON as one token, which is inaccurate but deterministic. */
function estimateTokens(values: unknown[]): number {
  return Math.ceil((JSON.stringify(values.filter(Boolean)).length - 2) / 4)
}

/** Splits by code points, so surrogate pairs stay together. */
export function splitText(text: string, size: number): string[] {
  const points = Array.from(text)
  return Array.from({ length: Math.ceil(points.length / size) }, (_, i) =>
    points.slice(i * size, (i + 1) * size).join(''),
  )
}
