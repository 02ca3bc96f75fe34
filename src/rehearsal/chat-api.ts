import type { Api } from './api.js'
import { chunksOf, completionOf, type Envelope } from './completion.js'
import { type ChatRequest, readChatRequest } from './request.js'
import type { Turn } from './turn.js'

/** Chat Completions. */
export const chatApi: Api = {
  name: 'chat',
  idPrefix: 'chatcmpl-rehearsal-',
  read: readChatRequest,
  strictProblem: () => null,
  refusalBody: ({ body }) => body,

  speech: (turn, request, envelope) => ({
    body: () => completionOf(turn, request, envelope),
    events: (stop) => eventsOf(turn, request, envelope, stop),
    error: (error, status) => ({ error: status === 200 ? error : { ...usualError(status), ...error } }),
  }),
}

function eventsOf(turn: Turn, request: ChatRequest, envelope: Envelope, stop: number | undefined): string[] {
  const { opening, deltas, end } = chunksOf(turn, request, envelope)
  const failure = turn.errorInStream
  const ends = failure === undefined && stop === undefined
  const chunks = [opening, ...deltas.slice(0, failure?.after ?? stop)]
  if (failure) chunks.push({ error: failure.error })
  if (ends) chunks.push(...end)
  const events = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`)
  if (ends && turn.endWithout !== 'done' && turn.endWithout !== 'both') events.push('data: [DONE]\n\n')
  return events
}

/** What OpenAI sends with a status when the scenario does not say. */
export function usualError(status: number) {
  if (status === 429)
    return errorObject('requests', 'rate_limit_exceeded', 'Rate limit reached. Try again later.')
  if (status === 401)
    return errorObject('invalid_request_error', 'invalid_api_key', 'Incorrect API key provided.')
  if (status < 500) return errorObject('invalid_request_error', null, 'The request is invalid.')
  return errorObject('server_error', null, 'The server had an error while processing the request.')
}

function errorObject(type: string, code: string | null, message: string) {
  return { message, type, param: null, code }
}
