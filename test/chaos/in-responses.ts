import { createAnswer, encodeEvents } from '../../src/rehearsal/planned-response.js'
import { chatFormat } from '../../src/core/models/openai/chat-wire.js'
import {
  listItemProblems,
  toChatRequest,
  readResponsesRequest,
  responsesApi,
} from '../../src/rehearsal/responses-api.js'
import type { ChatRequest, Turn } from '../../src/rehearsal/index.js'
import { findStrictProblem } from '../../src/rehearsal/request-problem.js'
import { type Act, type Script } from './script.js'

/** A request of either API in chat form, with its problems. */
export function readEither(body: unknown): { request: ChatRequest; problem: string | null; isChat: boolean } {
  if (Object.hasOwn(body as object, 'messages')) {
    const request = body as ChatRequest
    return { request, problem: findStrictProblem(request)?.message ?? null, isChat: true }
  }
  const sent = readResponsesRequest(body)
  const request = toChatRequest(sent)
  const [own] = listItemProblems(sent)
  const found = own ?? findStrictProblem(request, { calls: Infinity, id: 64 })
  return { request, problem: found?.message ?? null, isChat: false }
}

let answers = 0

/**
 * The same answer over the Responses API: the chat events up to the first non-text part, then that part.
 * Non-chat content is unchanged.
 */
export function inResponses(script: Script, request: ChatRequest): Script {
  const { body, status = 200, instead } = script
  if (instead || !Array.isArray(body) || status !== 200) return script
  const acts = body as Act[]
  const stop = acts.findIndex((act) => typeof act !== 'string')
  const [texts, then] = stop === -1 ? [acts, []] : [acts.slice(0, stop), acts.slice(stop)]
  const turn = turnOf((texts as string[]).join(''))
  if (turn === null) return script
  answers += 1
  const said = createAnswer(turn, request, {
    id: `resp_${answers}`,
    created: 0,
    model: 'chaos-1',
    callPrefix: `call_${answers}_`,
  })
  // All deltas, without an end.
  const isCut = then.length > 0 || turn.endWithout !== undefined
  const answer =
    request.stream === true
      ? encodeEvents(turn, responsesApi.toStream(said), isCut ? 1_000_000 : undefined)
      : [JSON.stringify(responsesApi.toBody(said))]
  return { ...script, body: [...answer, ...then] }
}

/** The chat form of the provider's approval request before it calls a hosted tool. */
export const hostedCall = 'zip, shorten'

/** The chat form of it, or null if there is none. */
function turnOf(text: string): Turn | null {
  const fold = chatFormat.createFold()
  try {
    if (text.startsWith('{')) fold.push(JSON.parse(text), true)
    else {
      const data = text.split('\n').flatMap((line) => (line.startsWith('data: {') ? [line.slice(6)] : []))
      if (data.length === 0) return null
      for (const one of data) fold.push(JSON.parse(one))
    }
  } catch {
    return null
  }
  const {
    text: words,
    reasoning,
    refusal,
    toolCalls,
    finishReason,
    complete,
  } = fold.getResponse(text.includes('[DONE]'))
  return {
    ...(words !== '' && { text: words }),
    ...(reasoning !== '' && { reasoning }),
    ...(refusal !== null && { refusal }),
    toolCalls: toolCalls.map(({ id, function: { name, arguments: input } }) => ({
      ...(id !== '' && { id }),
      ...(name === hostedCall ? { server: 'zip', name: 'shorten' } : { name }),
      arguments: input,
    })),
    ...(finishReason !== null && { finishReason }),
    ...(!complete && { endWithout: 'both' as const }),
  }
}
