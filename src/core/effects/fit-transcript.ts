import type { ContextStrategy, Fit, CompactionOutput } from '../../../machines/agent/fit.js'
import type { ModelActorError } from '../../../machines/agent/model-response.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import { type FitSituation, getLeastSize, isValidGap } from '../context/gap.js'
import { createTokenCounter, type TokenCounter } from '../context/token-counter.js'
import { perMessage } from '../prices/estimate-tokens.js'
import { drawFit, fitCompact, fitNothing, fitSlidingWindow, type FitStrategy } from '../context/strategies.js'
import { planSummary, fitWithoutSummary, fitWithSummary } from '../context/strategies/summarize.js'
import { createSummaryRequest } from '../context/summary-request.js'
import { wrapTokenizer, loadDefaultTokenizer } from '../context/default-tokenizer.js'
import { StatewrightError, toPlainError } from '../base/errors.js'
import { ModelError, type ModelRequest } from '../models/provider.js'
import type { AgentParts, AskScope } from '../live/agent-parts.js'
import type { EffectScope } from '../live/runtime.js'
import { requestSummary, type Summary, buildRequest } from './build-request.js'
import { createSummaryStep } from './request-model.js'
import { applyPlan, findPlannedMessages } from './apply-plan.js'

export async function loadCounter({ tokenizer, model }: AgentParts): Promise<TokenCounter> {
  const counting = tokenizer ? wrapTokenizer(tokenizer) : await loadDefaultTokenizer()
  return createTokenCounter(counting, model.echoesReasoning)
}

const strategies: Record<ContextStrategy, FitStrategy> = {
  sliding_window: fitSlidingWindow,
  compact: fitCompact,
  summarize: fitWithoutSummary,
  none: fitNothing,
}

type FitScope = AskScope & EffectScope

export async function fitTranscript(base: FitScope, counter: TokenCounter): Promise<CompactionOutput> {
  const { context } = base
  const parts = applyPlan(base.parts, context)
  const scope = { ...base, parts }
  if (findPlannedMessages(context)) return checkPlannedSize(parts, context, counter)
  const { strategy } = context.config.context
  const requestWith = (fit: Fit | null) => buildRequest(parts, { ...context, fit }, false)
  const sizeOf = (fit: Fit | null) => counter.request(requestWith(fit))
  const { fit, before, situation } = checkFit(context, counter, requestWith)
  const done = (fit: Fit | null, more: Partial<CompactionOutput> = {}): CompactionOutput => {
    return { fit, strategy, before, after: sizeOf(fit), usage: null, warning: null, ...more }
  }
  if (situation === null) return done(fit)

  const plain = drawFit(strategies[strategy], situation, sizeOf)
  if (plain === null) throw contextOverflowError(situation, strategy, requestWith(null), counter)
  if (strategy !== 'summarize') return done(plain)

  const { fit: summarized, problem, usage } = await tryFitWithSummary(situation, scope, counter, sizeOf)
  if (summarized) return done(summarized, { usage })
  if (problem === '') return done(plain)
  return done(plain, { strategy: 'compact', usage, warning: formatNoSummary(problem) })
}

/** Rejects planned messages that do not fit. Messages selected by `prepareStep` are not compacted. */
function checkPlannedSize(parts: AgentParts, context: AgentContext, counter: TokenCounter): CompactionOutput {
  const { window, strategy } = context.config.context
  const size = counter.request(buildRequest(parts, context, false))
  if (size <= window || window === 0)
    return { fit: context.fit, strategy, before: size, after: size, usage: null, warning: null }
  throw overflowError(size, window, ', with the messages that prepareStep returned. Return fewer.')
}

/** Returns a fit with a summary, or the problem as a string, which is empty if there was nothing to summarize. */
async function tryFitWithSummary(
  situation: FitSituation,
  scope: FitScope,
  counter: TokenCounter,
  sizeOf: (fit: Fit | null) => number,
): Promise<Omit<Summary, 'text'> & { fit: Fit | null }> {
  const without = (problem: string, usage: Summary['usage'] = null) => ({ fit: null, problem, usage })
  const plan = planSummary(situation)
  if (plan === null) return without('the window has no room for a summary.')
  if (plan.fresh.length === 0) return without('')
  // A summary is free text, even if the answer has a schema.
  const { output: _output, ...parts } = scope.parts
  const base = buildRequest(parts, scope.context, false)
  const fits = (request: typeof base) => counter.request(request) <= situation.window
  const request = createSummaryRequest(base, plan, fits)
  if (request === null) return without('the messages to summarize do not fit in the window either.')
  let summary: Summary | null = null
  await scope.runtime.waitUntilDurable()
  scope.abort.throwIfAborted()
  scope.runtime.steps.start(
    scope.self,
    createSummaryStep(scope.context, () => summary),
  )
  scope.abort.throwIfAborted()
  summary = await requestSummary(scope, request)
  const { text, problem, usage } = summary
  if (text === null) return without(problem, usage)
  const fit = fitWithSummary(situation, plan.gap, text)
  const isTooLong = counter.text(text) > plan.limit || sizeOf(fit) > situation.window
  if (isTooLong) return without(`the summary was longer than ${plan.limit} tokens.`, usage)
  return { fit, problem: '', usage }
}

function formatNoSummary(problem: string): string {
  const why = /[.!?…]$/.test(problem) ? problem : `${problem}.`
  return `The messages that exceed the context window could not be summarized: ${why} A marker replaces them, as with context.strategy 'compact'.`
}

export function toActorError(error: unknown): ModelActorError {
  const plain = toPlainError(error)
  if (error instanceof ModelError) return { ...plain, ...error.failure, usage: null }
  return error instanceof StatewrightError ? { ...plain, code: error.code } : plain
}

function contextOverflowError(
  situation: FitSituation,
  strategy: ContextStrategy,
  request: ModelRequest,
  counter: TokenCounter,
): ModelError {
  const { fixed, sizes, window } = situation
  const whole = strategy === 'none'
  const needed = whole ? sizes.reduce((sum, size) => sum + size, fixed) : getLeastSize(situation)
  const tools = counter.tools(request)
  const amounts = [
    `${fixed - tools} for instructions`,
    `${tools} for tools`,
    `${needed - fixed} for ${whole ? 'messages' : 'the newest message and the messages it requires'}`,
  ]
  const advice = `Raise it, or ${whole ? 'choose another context.strategy' : 'shorten the largest part'}.`
  return overflowError(needed, window, `: ${amounts.join(', ')}. ${advice}`)
}

function overflowError(needed: number, window: number, rest: string): ModelError {
  const message = `The request needs ${needed} tokens, more than the ${window} of context.window${rest}`
  return new ModelError({ kind: 'context_overflow', code: 'context_overflow', message })
}

/** A fit is dropped only if the transcript without the fit leaves room to grow. */
const comfortable = 3 / 4

/** Checks whether the next request fits. An existing fit stays valid until it is outgrown. */
export function checkFit(
  { messages, fit, config }: Pick<AgentContext, 'messages' | 'fit' | 'config'>,
  counter: TokenCounter,
  requestWith: (fit: Fit | null) => ModelRequest,
) {
  const window = config.context.window || Infinity
  const isOfUse = fit !== null && config.context.strategy !== 'none' && isValidGap(messages, fit)
  const current = isOfUse ? fit : null
  const base = requestWith(null)
  const whole = counter.request(base)
  const before = current === null ? whole : counter.request(requestWith(current))
  if (whole <= (current === null ? window : window * comfortable))
    return { fit: null, before, situation: null }
  if (before <= window) return { fit: current, before, situation: null }
  const situation: FitSituation = {
    messages,
    sizes: messages.map(counter.message),
    fixed: counter.fixed(base),
    window,
    previous: current,
    noteSize: (note) => perMessage + counter.text(note),
  }
  return { fit: current, before, situation }
}
