import { remaining } from '../../../guards/budget.js'
import type { AgentConfig } from '../../../machines/agent/config.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import { kindOf, type ModelResponse } from '../../../machines/agent/response.js'
import { budgetLimits, budgetTotals } from '../../../machines/agent/totals.js'
import { noUsage, type TokenUsage, type Usage } from '../../../machines/agent/usage.js'
import { checkedResponse } from '../models/checked-response.js'
import { toModelFailure } from '../models/failures.js'
import type { ModelRequest } from '../models/provider.js'
import { watchIdle } from './watch-idle.js'
import type { Live } from '../live/live.js'
import type { AgentParts } from '../live/parts.js'
import { refuseUnknownPrice } from './refusals.js'
import { estimateRequestTokens, estimateUsage } from '../prices/estimate.js'

/** What came of asking for a summary: a text, or what was wrong in a few words; and what it cost either way. */
export interface Summary {
  text: string | null
  problem: string
  usage: Usage | null
}

export interface SummaryScope {
  parts: AgentParts
  live: Live
  context: AgentContext
  signal: AbortSignal
}

/**
 * One attempt at a summary. Nothing of it is shown: no `stream_chunk`; a step that says `summary`. Rejects only when it is stopped, or when
 * the journal cannot be written; every other failure is an outcome.
 */
export async function requestSummary(
  { parts, live, context, signal }: SummaryScope,
  request: ModelRequest,
): Promise<Summary> {
  const { config } = context
  await live.flushed()
  signal.throwIfAborted()
  const refused = await whyNotAsked(parts, context, request)
  if (refused !== null) return { text: null, problem: refused, usage: null }

  const price = async (counted: TokenUsage | null, answer: Answer): Promise<Usage> => {
    const estimate = config.budget.onMissingUsage === 'estimate' ? estimateUsage(request, answer) : noUsage
    const { provider, model } = parts.model
    const tokens = counted ?? estimate
    return { ...tokens, cost: await parts.prices.price(provider, model, tokens), estimated: counted === null }
  }
  const idle = watchIdle(signal, config, request.stream, live.clock)
  let written = ''
  try {
    const answer = await idle.orSilence(
      parts.model.request(request, {
        signal: idle.signal,
        onActivity: idle.onActivity,
        onDelta: (text) => {
          written += text
        },
      }),
    )
    const response = checkedResponse(answer)
    return { ...verdictOn(response, config), usage: await price(response.usage, response) }
  } catch (error) {
    signal.throwIfAborted()
    const failure = toModelFailure(idle.signal.aborted ? idle.signal.reason : error, live.clock.now())
    const text = failure.partialText || written
    const wasAnswered = failure.usage !== null || text !== '' || failure.kind === 'incomplete'
    return {
      text: null,
      problem: failure.message,
      usage: wasAnswered ? await price(failure.usage, { ...unheard, text }) : null,
    }
  } finally {
    idle.stop()
  }
}

type Answer = Pick<ModelResponse, 'text' | 'reasoning' | 'refusal' | 'toolCalls'>

const unheard: Answer = { text: '', reasoning: '', refusal: null, toolCalls: [] }

/** A summary is a request like any other: it needs a price where cost is limited, and tokens that are left. */
async function whyNotAsked(
  parts: AgentParts,
  { config, usage }: AgentContext,
  request: ModelRequest,
): Promise<string | null> {
  try {
    await refuseUnknownPrice(parts, config, usage.session)
  } catch (error) {
    return (error as Error).message
  }
  if (!config.budget.preflight) return null
  const left = remaining(budgetTotals({ config, usage }), budgetLimits(config)).tokens ?? Infinity
  return estimateRequestTokens(request) < left ? null : 'it would cross limits.tokenBudget'
}

function verdictOn(response: ModelResponse, { completion }: AgentConfig): Pick<Summary, 'text' | 'problem'> {
  const { text, toolCalls, complete } = response
  // Every provider has words of its own for a cut.
  const kind = kindOf(response)
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
