import type { AnyActorRef } from 'xstate'
import { remaining } from '../../../guards/budget.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import {
  kindOf,
  type ModelActorError,
  type ModelFailure,
  type ModelOutput,
  type ModelResponse,
} from '../../../machines/agent/response.js'
import { budgetLimits, budgetTotals } from '../../../machines/agent/totals.js'
import type { TokenUsage, Usage } from '../../../machines/agent/usage.js'
import { checkedResponse } from '../models/checked-response.js'
import { toModelFailure } from '../models/failures.js'
import { ModelError, type ModelRequest } from '../models/provider.js'
import { finalToolOf } from '../structured/demand-output.js'
import { droppedCalls, finalAnswer } from '../structured/final-answer.js'
import { readOutput } from '../structured/read-output.js'
import { prepareCalls } from '../tools/prepare.js'
import { estimateRequestTokens, estimateUsage } from '../prices/estimate.js'
import { inference } from './inference.js'
import type { AnswerStream } from '../live/answer-stream.js'
import type { Live } from '../live/live.js'
import { refuseUnknownPrice } from './refusals.js'
import type { AgentParts } from '../live/parts.js'
import { partialUsage } from './partial-usage.js'
import { requestOf } from './request-of.js'
import { clearedReasoning } from './cleared-reasoning.js'
import { deltaSink } from './cleared-stream.js'
import { watchIdle } from './watch-idle.js'

/**
 * One attempt at one response. Deltas are emitted as they come; what the machine learns is the whole answer, or a
 * failure as plain data.
 */
export async function requestModel(
  parts: AgentParts,
  { conclude, signal, self, live, context, stream }: RequestScope,
): Promise<ModelOutput> {
  const { config } = context
  const request = requestOf(parts, context, conclude)
  const shown = deltaSink(parts, stream, { live, context, signal })
  // Before anything is timed: a slow store is no silence of the provider.
  await live.flushed()
  const idle = watchIdle(signal, config, request.stream, live.clock)
  // While the answer is awaited, which takes longer. It is priced at once when it is stopped midway.
  let isPricing = false
  const loadPrices = (): void => {
    if (isPricing) return
    isPricing = true
    void parts.prices.load()
  }
  try {
    signal.throwIfAborted()
    if (context.steps === 0) {
      await refuseUnknownPrice(parts, config, context.usage.session)
      await parts.output?.ready?.()
    }
    refuseOverBudget(request, context)
    live.steps.start(self, inference(context))
    signal.throwIfAborted()
    const answer = await idle.orSilence(
      parts.model.request(request, {
        signal: idle.signal,
        onSent: loadPrices,
        onActivity: (kind) => {
          loadPrices()
          idle.onActivity(kind)
        },
        onDelta: (text, reasoning) => {
          shown.write(text ?? '', reasoning ?? '')
        },
      }),
    )
    const response = checkedResponse(answer)
    const finalTool = parts.output && finalToolOf(parts.output, request)
    const final = finalAnswer(response, finalTool)
    if (!request.stream) shown.write(final.text, final.reasoning)
    // The arguments of a call are not streamed; where they are the answer, they come as one piece.
    else if (final !== response && response.text === '') shown.write(final.text, '')
    await shown.finish()
    if (!response.complete && config.completion.onMissingEnd === 'retry') throw incomplete(response)
    const dropped = droppedCalls(response, finalTool)
    if (dropped !== null) live.emit({ type: 'warning', code: 'calls_dropped', message: dropped })
    const usage = await usageOf(parts, request, response, context)
    const cleared = await clearedReasoning(parts, { live, context, signal }, final)
    const output = await outputOf(parts, { ...cleared, usage }, context, live.binding.context)
    return context.features.outputShields ? { ...output, reasoningCleared: true } : output
  } catch (error) {
    const silenced = idle.signal.aborted && !signal.aborted
    const reason = silenced ? idle.signal.reason : error
    const failure = withoutOurCode(toModelFailure(reason, live.clock.now()), reason)
    // What no shield has cleared is not kept either.
    const partialText = context.features.outputShields ? stream.text : failure.partialText || stream.text
    throw await plainFailure(parts, { ...failure, partialText }, context)
  } finally {
    idle.stop()
  }
}

/** `self`: the actor that does it; `stream`: where its deltas go. */
export interface RequestScope {
  /** Whether this is the last request, without tools. */
  conclude: boolean
  signal: AbortSignal
  self: AnyActorRef
  live: Live
  context: AgentContext
  stream: AnswerStream
}

/** The one code that the machine decides by. */
const overBudget = 'token_budget'

class OverBudget extends ModelError {}

/** A provider that has the same word for something of its own does not speak of our budget. */
function withoutOurCode(failure: ModelFailure, error: unknown): ModelFailure {
  const isForeign = failure.code === overBudget && !(error instanceof OverBudget)
  return isForeign ? { ...failure, code: `provider_${overBudget}` } : failure
}

/** `budget.preflight`: a request whose input alone crosses the line is not sent. */
function refuseOverBudget(request: ModelRequest, context: AgentContext): void {
  const { budget, limits } = context.config
  if (!budget.preflight || limits.tokenBudget === 0) return
  const needed = estimateRequestTokens(request)
  const left = remaining(budgetTotals(context), budgetLimits(context.config)).tokens ?? Infinity
  if (needed < left) return
  throw new OverBudget({
    kind: 'fatal',
    code: overBudget,
    message: `The next request needs about ${needed} tokens and ${left} are left of limits.tokenBudget (${limits.tokenBudget}). Raise it to go on.`,
  })
}

async function outputOf(
  { output, tools, clock }: AgentParts,
  response: ModelOutput['response'],
  { config }: AgentContext,
  appContext: unknown,
): Promise<ModelOutput> {
  const calls = await prepareCalls(response.toolCalls, tools, {
    context: appContext,
    defaultTimeoutMs: config.toolCalls.timeoutMs,
    clock,
  })
  const kind = kindOf(response)
  if (output === undefined || (kind !== 'answer' && kind !== 'empty')) return { response, calls }
  const reading = await readOutput(response.text, output.validate, output.schema)
  return { response, calls, outputProblem: reading.ok ? null : reading.problem }
}

async function usageOf(
  parts: AgentParts,
  request: ModelRequest,
  response: ModelResponse,
  context: AgentContext,
): Promise<Usage> {
  const { usage } = response
  const estimate = context.config.budget.onMissingUsage === 'estimate'
  return priced(parts, usage ?? (estimate ? estimateUsage(request, response) : noTokens), usage === null)
}

async function priced(parts: AgentParts, tokens: TokenUsage, estimated: boolean): Promise<Usage> {
  return {
    ...tokens,
    cost: await parts.prices.price(parts.model.provider, parts.model.model, tokens),
    estimated,
  }
}

async function plainFailure(
  parts: AgentParts,
  failure: ModelFailure,
  context: AgentContext,
): Promise<ModelActorError> {
  return { ...failure, usage: await usageOfFailure(parts, failure, context), jitter: 0.5 + Math.random() }
}

/** What a failed attempt cost: as reported, or, once text had come, by estimate. A refused request cost nothing. */
async function usageOfFailure(
  parts: AgentParts,
  { usage, partialText, kind }: ModelFailure,
  context: AgentContext,
): Promise<Usage | null> {
  if (usage !== null) return priced(parts, usage, false)
  const wasAnswered = partialText !== '' || kind === 'incomplete'
  if (!wasAnswered || context.config.budget.onMissingUsage !== 'estimate') return null
  await parts.prices.load()
  return partialUsage(parts, context, partialText)
}

function incomplete(response: ModelResponse): ModelError {
  return new ModelError({
    kind: 'incomplete',
    code: 'incomplete_response',
    message:
      'The stream closed with neither a finish reason nor [DONE]; such an answer is never counted as complete.',
    partialText: response.text,
    usage: response.usage,
  })
}

const noTokens: TokenUsage = {
  inputTokens: 0,
  outputTokens: 0,
  totalTokens: 0,
  cachedInputTokens: 0,
  reasoningTokens: 0,
}
