import type { AgentConfig } from '../../../machines/agent/config.js'
import {
  classifyResponse,
  type ModelActorError,
  type ModelResponse,
} from '../../../machines/agent/model-response.js'
import type { Usage } from '../../../machines/agent/usage.js'
import type { ModelRequest } from '../models/provider.js'
import { askModel, type AskScope } from './ask-model.js'

/** The outcome of a request for a summary: a text or a short problem, and the usage. */
export interface Summary {
  text: string | null
  problem: string
  usage: Usage | null
}

/**
 * One attempt at a summary. Nothing of it is shown: no `stream_chunk`; a step that says `summary`. Rejects only when it
 * is stopped; every failure is an outcome.
 */
export async function requestSummary(scope: AskScope, request: ModelRequest): Promise<Summary> {
  const { context, abort } = scope
  let written = ''
  try {
    return await askModel(scope, {
      request,
      purpose: 'summary',
      needsPrice: true,
      onDelta: (text) => {
        written += text
      },
      getKnownText: (partialText) => partialText || written,
      toOutput: async (response, price) => ({
        ...judgeSummary(response, context.config),
        usage: await price(),
      }),
    })
  } catch (error) {
    abort.throwIfAborted()
    const { message, usage } = error as ModelActorError
    return { text: null, problem: message, usage }
  }
}

function judgeSummary(
  response: ModelResponse,
  { completion }: AgentConfig,
): Pick<Summary, 'text' | 'problem'> {
  const { text, toolCalls, complete } = response
  // Every provider has its own finish reason for a truncated answer.
  const kind = classifyResponse(response)
  const problems: [boolean, string][] = [
    [kind === 'refusal' || kind === 'filtered', 'the model refused'],
    [!complete && completion.onMissingEnd === 'retry', 'the stream closed without an end'],
    [kind === 'truncated' || kind === 'truncatedCalls', 'the answer was cut off at the output limit'],
    [toolCalls.length > 0, 'the model called a tool'],
    [text.trim() === '', 'the answer was empty'],
  ]
  const problem = problems.find(([holds]) => holds)?.[1]
  return problem === undefined ? { text: text.trim(), problem: '' } : { text: null, problem }
}
