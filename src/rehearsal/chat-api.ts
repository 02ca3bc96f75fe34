import type { ProviderApi } from './provider-api.js'
import { toChunks, toCompletion, type Envelope } from './chat-completion.js'
import { type ChatRequest, readChatRequest } from './chat-request.js'
import type { Turn } from './turn-schema.js'

/** Chat Completions. */
export const chatApi: ProviderApi = {
  name: 'chat',
  idPrefix: 'chatcmpl-rehearsal-',
  readRequest: readChatRequest,
  findStrictProblem: () => null,
  formatRefusal: ({ body }) => body,

  createEncoder: (turn, request, envelope) => ({
    encodeBody: () => toCompletion(turn, request, envelope),
    encodeEvents: (stop) => encodeEvents(turn, request, envelope, stop),
    encodeError: (error, status) => ({
      error: status === 200 ? error : { ...getDefaultError(status), ...error },
    }),
  }),
}

function encodeEvents(
  turn: Turn,
  request: ChatRequest,
  envelope: Envelope,
  stop: number | undefined,
): string[] {
  const { opening, deltas, end } = toChunks(turn, request, envelope)
  const failure = turn.errorInStream
  const ends = failure === undefined && stop === undefined
  const chunks = [opening, ...deltas.slice(0, failure?.after ?? stop)]
  if (failure) chunks.push({ error: failure.error })
  if (ends) chunks.push(...end)
  const events = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`)
  if (ends && turn.endWithout !== 'done' && turn.endWithout !== 'both') events.push('data: [DONE]\n\n')
  return events
}

/** OpenAI's usual error for a status, when the scenario has none. */
export function getDefaultError(status: number) {
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
