import type { Api } from '../api.js'
import { usualError } from '../chat-api.js'
import { responsesSpeech } from './answer.js'
import { asChat, readResponsesRequest } from './request.js'
import { itemsProblem } from './strict.js'

/** OpenAI's Responses API. */
export const responsesApi: Api = {
  name: 'responses',
  idPrefix: 'resp_rehearsal_',
  limits: { calls: Infinity, id: 64 },
  read: (sent) => asChat(readResponsesRequest(sent)),
  strictProblem: (sent) => itemsProblem(readResponsesRequest(sent)),
  refusalBody: ({ body }) => body,

  speech: (turn, request, envelope) => ({
    ...responsesSpeech(turn, request, envelope),
    error: (error, status) => ({ error: status === 200 ? error : { ...usualError(status), ...error } }),
  }),
}
