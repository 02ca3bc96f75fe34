import { type AskedModel, OverBudgetError, toBudgetCode } from './bill.js'
import type { ModelFailure } from '../../../machines/agent/model-response.js'
import type { Usage } from '../../../machines/agent/usage.js'
import type { JsonObject } from '../../../machines/agent/json.js'
import { describeError } from '../base/errors.js'
import { BudgetError, type SharedBudget } from '../budgets/shared-budget.js'
import {
  addInputMargin,
  type HeldAmount,
  isUnpaid,
  learnInputCount,
  reserveInAll,
  unsettledCode,
  warnUnsettled,
} from '../budgets/reserve-in-all.js'
import { type AskScope, listRunBudgets } from '../live/agent-parts.js'
import type { ModelRequest } from '../models/provider.js'
import { createUsage, estimateRequestTokens } from '../prices/estimate-tokens.js'
import type { PriceBook } from '../prices/price-book.js'

/**
 * Reserves for the current model of a request in the shared budgets. Each reservation is settled exactly once.
 * @throws {OverBudgetError} or the reason for the abort
 */
export async function openBudgetHold({ parts, runtime, context, abort }: AskScope, request: ModelRequest) {
  let model: AskedModel = parts.model
  let held: HeldAmount[] = []
  let isAsked = false
  const before = { usd: 0, tokens: 0 }

  /** Emits an event of the run, or a process warning if the request has ended. */
  const reportUnsettled = (message: string): void => {
    if (abort.aborted) warnUnsettled(message)
    else runtime.emit({ type: 'warning', code: unsettledCode, message })
  }

  async function take(): Promise<void> {
    let currentId = 'budgets'
    try {
      const budgets = listRunBudgets(parts, runtime, context.sessionId)
      const { inputTokens, outputCap } = findWorstCase(model, request)
      const mostOutput = runtime.prices.maxOutputTokens(model.model)
      const getAmount = async ({ id, needsPrice, reserveOutputTokens }: SharedBudget) => {
        currentId = id
        const outputTokens = outputCap ?? mostOutput ?? reserveOutputTokens
        const usd = needsPrice ? await priceWorstCase(runtime.prices, model, inputTokens, outputTokens) : 0
        return { usd, tokens: inputTokens + outputTokens }
      }
      held = await reserveInAll(budgets, getAmount, abort.signal, reportUnsettled)
    } catch (error) {
      abort.throwIfAborted()
      throw toOverBudgetError(error, currentId, runtime.time.now())
    }
  }

  /** Null counts the reserved amount in full, as the cost is unknown. Only the first call has an effect. */
  async function settle(paid: Paid | null): Promise<void> {
    const settling = held
    held = []
    await Promise.all(
      settling.map((one) =>
        one.settle({
          usd: limitEstimate(paid?.usd ?? null, one.usd, paid?.estimated),
          tokens: limitEstimate(paid?.tokens ?? null, one.tokens, paid?.estimated),
        }),
      ),
    )
  }

  /** The part of the usage that earlier models have not settled. */
  function toPaidNow(usage: Usage): Paid {
    const { usd, tokens, ...paid } = toPaid(usage)
    return {
      ...paid,
      usd: usd === null ? null : Math.max(0, usd - before.usd),
      tokens: Math.max(0, tokens - before.tokens),
    }
  }

  function settleEarly(usage: Usage | null, unknown: Paid | null): Promise<void> {
    if (!isAsked) return settle(unpaid)
    return settle(usage === null ? unknown : toPaidNow(usage))
  }

  await take()
  return {
    /** False while the request waits for a limiter, because stopping it then costs nothing. */
    markAsked(isSent: boolean): void {
      isAsked = isSent
    },
    async switchModel(
      next: AskedModel,
      failure: ModelFailure | null,
      spent: Usage | null,
      error: unknown,
    ): Promise<void> {
      before.usd += spent?.cost ?? 0
      before.tokens += spent ? countTokens(spent) : 0
      if (failure === null || error === undefined) await settle(unpaid)
      else await settle(spent === null ? judgeFailure(failure, error) : toPaid(spent))
      model = next
      await take()
    },
    async settleAnswer(usage: Usage, isReported: boolean): Promise<void> {
      if (isReported) learnInputTokens(model, request, usage.inputTokens)
      // The cost is unknown without usage and without an estimate.
      await settle(isReported || usage.estimated ? toPaidNow(usage) : null)
    },
    settleFailure: (failure: ModelFailure, usage: Usage | null, error: unknown) =>
      settleEarly(usage, judgeFailure(failure, error)),
    settleStopped: (usage: Usage | null) => settleEarly(usage, null),
  }
}

interface Paid {
  usd: number | null
  tokens: number
  /** The amount is an estimate. A stopped answer may have cost slightly more, up to the reserved amount. */
  estimated?: boolean
}

const unpaid: Paid = { usd: 0, tokens: 0 }

const judgeFailure = ({ status }: ModelFailure, error: unknown): Paid | null =>
  isUnpaid(status, error) ? unpaid : null

const estimateMargin = 1.1

function limitEstimate(paid: number | null, reserved: number | null, estimated = false): number | null {
  if (paid === null || !estimated || reserved === null) return paid
  return Math.min(paid * estimateMargin, Math.max(paid, reserved))
}

function toPaid(usage: Usage): Paid {
  return { usd: usage.cost, tokens: countTokens(usage), ...(usage.estimated && { estimated: true }) }
}

function countTokens({ inputTokens, outputTokens }: Usage): number {
  return inputTokens + outputTokens
}

/** An exhausted budget ends the run or makes it wait. An unavailable store may recover. */
function toOverBudgetError(error: unknown, budget: string, now: number): OverBudgetError {
  const message = describeError(error)
  if (!(error instanceof BudgetError))
    return new OverBudgetError({ kind: 'transient', code: 'shared_budget_unavailable', message }, { budget })
  return new OverBudgetError(
    { kind: 'fatal', code: toBudgetCode(error), message },
    // The clocks of the budget and of the sleeping session can differ.
    { budget, ...(error.waitMs !== null && { wakeAt: now + error.waitMs }) },
  )
}

const nameOf = ({ provider, model }: AskedModel): string => `${provider}/${model}`

/** The worst case of a request: estimated input with a margin, and the output cap. */
export function findWorstCase(model: AskedModel, request: ModelRequest) {
  return {
    inputTokens: addInputMargin(nameOf(model), estimateRequestTokens(request)),
    outputCap: findOutputCap(request.sampling.maxTokens, request.extraBody),
  }
}

export function learnInputTokens(model: AskedModel, request: ModelRequest, inputTokens: number): void {
  learnInputCount(nameOf(model), estimateRequestTokens(request), inputTokens)
}

/** In USD, or null without a price. Assumes that all input is written to a cache. */
export async function priceWorstCase(
  prices: PriceBook,
  { provider, model }: AskedModel,
  inputTokens: number,
  outputTokens: number,
): Promise<number | null> {
  const usage = createUsage(inputTokens, outputTokens)
  const plain = await prices.price(provider, model, usage)
  const written = await prices.price(provider, model, { ...usage, cacheWriteTokens: inputTokens })
  return plain === null || written === null ? (plain ?? written) : Math.max(plain, written)
}

function findOutputCap(maxTokens: number | undefined, extraBody: JsonObject): number | null {
  for (const key of ['max_completion_tokens', 'max_tokens', 'max_output_tokens']) {
    const cap = extraBody[key]
    if (typeof cap === 'number' && cap > 0) return Math.max(cap, maxTokens ?? 0)
  }
  return maxTokens ?? null
}
