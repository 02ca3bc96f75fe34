import type { ProviderApi } from '../provider-api.js'
import { getDefaultError } from '../chat-api.js'
import { createResponsesEncoder } from './responses-answer.js'
import { toChatRequest, readResponsesRequest } from './responses-request.js'
import { findItemsProblem } from './responses-problem.js'

/** OpenAI's Responses API. */
export const responsesApi: ProviderApi = {
  name: 'responses',
  idPrefix: 'resp_rehearsal_',
  limits: { calls: Infinity, id: 64 },
  readRequest: (sent) => toChatRequest(readResponsesRequest(sent)),
  findStrictProblem: (sent) => findItemsProblem(readResponsesRequest(sent)),
  formatRefusal: ({ body }) => body,

  createEncoder: (turn, request, envelope) => ({
    ...createResponsesEncoder(turn, request, envelope),
    encodeError: (error, status) => ({
      error: status === 200 ? error : { ...getDefaultError(status), ...error },
    }),
  }),
}
