import type { AnyActorRef } from 'xstate'
import type { ContextStrategy, Fit, CompactionOutput } from '../../../machines/agent/fit.js'
import type { ModelActorError } from '../../../machines/agent/response.js'
import { checkFit } from '../context/check-fit.js'
import { createTokenCounter, type TokenCounter } from '../context/count-tokens.js'
import { drawFit, type Situation, type Strategy } from '../context/situation.js'
import { contextOverflow } from '../context/overflow.js'
import type { AskScope } from './ask-model.js'
import { requestSummary, type Summary } from './request-summary.js'
import { compact, none, slidingWindow } from '../context/strategies/plain.js'
import { planSummary, withoutSummary, withSummary } from '../context/strategies/summarize.js'
import { summaryRequest } from '../context/summary-request.js'
import { checkedTokenizer, defaultTokenizer } from '../context/tokenizer.js'
import { StatewrightError } from '../base/errors.js'
import { ModelError } from '../models/provider.js'
import { summaryInference } from './inference.js'
import type { AgentParts } from '../live/parts.js'
import { plainError } from '../base/plain-error.js'
import { requestOf } from './request-of.js'

export async function counterOf({ tokenizer, model }: AgentParts): Promise<TokenCounter> {
  const counting = tokenizer ? checkedTokenizer(tokenizer) : await defaultTokenizer()
  return createTokenCounter(counting, model.echoesReasoning)
}

/** What each strategy does without asking the model. */
const strategies: Record<ContextStrategy, Strategy> = {
  sliding_window: slidingWindow,
  compact,
  summarize: withoutSummary,
  none,
}

/** `self`: the actor that does the work. */
export type FitScope = AskScope & { self: AnyActorRef }

export async function fitted(scope: FitScope, counter: TokenCounter): Promise<CompactionOutput> {
  const { parts, context } = scope
  const { strategy } = context.config.context
  const requestWith = (fit: Fit | null) => requestOf(parts, { ...context, fit }, false)
  const sizeOf = (fit: Fit | null) => counter.request(requestWith(fit))
  const { fit, before, situation } = checkFit(context, counter, requestWith)
  const done = (fit: Fit | null, more: Partial<CompactionOutput> = {}): CompactionOutput => ({
    fit,
    strategy,
    before,
    after: sizeOf(fit),
    usage: null,
    warning: null,
    ...more,
  })
  if (situation === null) return done(fit)

  const plain = drawFit(strategies[strategy], situation, sizeOf)
  if (plain === null) throw contextOverflow(situation, strategy, requestWith(null), counter)
  if (strategy !== 'summarize') return done(plain)

  const { fit: summarized, problem, usage } = await summaryFor(situation, scope, counter, sizeOf)
  if (summarized) return done(summarized, { usage })
  if (problem === '') return done(plain)
  return done(plain, { strategy: 'compact', usage, warning: noSummary(problem) })
}

/** The fit with a summary; without one, what the problem was (empty: there was nothing to sum up). */
async function summaryFor(
  situation: Situation,
  scope: FitScope,
  counter: TokenCounter,
  sizeOf: (fit: Fit | null) => number,
): Promise<Omit<Summary, 'text'> & { fit: Fit | null }> {
  const without = (problem: string, usage: Summary['usage'] = null) => ({ fit: null, problem, usage })
  const plan = planSummary(situation)
  if (plan === null) return without('the window has no room for one.')
  if (plan.fresh.length === 0) return without('')
  // A summary is free text, whatever the answer has to be.
  const { output: _output, ...parts } = scope.parts
  const base = requestOf(parts, scope.context, false)
  const fits = (request: typeof base) => counter.request(request) <= situation.window
  const request = summaryRequest(base, plan, fits)
  if (request === null) return without('what would have to be summed up does not fit the window either.')
  let summary: Summary | null = null
  await scope.live.flushed()
  scope.abort.throwIfAborted()
  scope.live.steps.start(
    scope.self,
    summaryInference(scope.context, () => summary),
  )
  scope.abort.throwIfAborted()
  summary = await requestSummary(scope, request)
  const { text, problem, usage } = summary
  if (text === null) return without(problem, usage)
  const fit = withSummary(situation, plan.gap, text)
  const isTooLong = counter.text(text) > plan.limit || sizeOf(fit) > situation.window
  if (isTooLong) return without(`it was longer than ${plan.limit} tokens.`, usage)
  return { fit, problem: '', usage }
}

function noSummary(problem: string): string {
  const why = /[.!?…]$/.test(problem) ? problem : `${problem}.`
  return `No summary could be made of what the context window has no room for: ${why} A marker stands in its place, as with context.strategy 'compact'.`
}

export function plainly(error: unknown): ModelActorError {
  const plain = plainError(error)
  if (error instanceof ModelError) return { ...plain, ...error.failure, usage: null }
  return error instanceof StatewrightError ? { ...plain, code: error.code } : plain
}
