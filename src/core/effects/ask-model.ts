import { getRemaining } from '../../../guards/budget.js'
import { truncate, scrubEvidence, toEvidence } from '../../../guards/lib/words.js'
import { toJitter } from '../../../guards/retry.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import type { ModelActorError, ModelFailure, ModelResponse } from '../../../machines/agent/model-response.js'
import { getStepId } from '../../../machines/agent/messages.js'
import type { Usage } from '../../../machines/agent/usage.js'
import { getBudgetTotals, toBudgetLimits } from '../../../machines/agent/budget-totals.js'
import { attachSignal } from '../base/abort.js'
import { getPlatform, loadOnce } from '../base/platform.js'
import { rememberThrown } from '../base/errors.js'
import { type AskScope, hasSharedBudgets } from '../live/agent-parts.js'
import type { AgentRuntime } from '../live/runtime.js'
import type { TelemetryRequestInfo } from '../telemetry/telemetry.js'
import { normalizeFailure, normalizeResponse, readOwnTotal } from '../models/normalize-response.js'
import type * as Failures from '../models/to-model-failure.js'
import type { ModelProvider, ModelRequest, ModelRequestOptions } from '../models/provider.js'
import { toRefusal } from '../models/leave-out.js'
import { refuseUnsupportedMedia, toAcceptedMessages } from '../models/result-media.js'
import { estimateRequestTokens } from '../prices/estimate-tokens.js'
import { type AskedModel, createBill, OverBudgetError, withoutOurCode } from './bill.js'
import { createCallNamer } from './call-stream.js'
import { checkPriceKnown } from './check-run-start.js'
import { loadScreening } from './run-tools.js'
import { watchIdle } from './watch-idle.js'

/** Loaded before the first request, because a page that has lost its connection could not load it later. */
let failures: typeof Failures | undefined

interface AskOptions<Output> extends Pick<ModelRequestOptions, 'onDelta' | 'onHostedCall'> {
  request: ModelRequest
  purpose: TelemetryRequestInfo['purpose']
  needsPrice: boolean
  onSend?: () => Promise<void> | undefined
  onToolCallDelta?: ModelRequestOptions['onToolCallDelta'] | undefined
  onFallback?: () => void
  getKnownText: (partialText: string) => string
  /** Converts the whole answer to the output. If it throws, the request fails. */
  toOutput: (response: ModelResponse, price: () => Usage | Promise<Usage>) => Promise<Output>
}

/**
 * The only function that sends model requests: once the log is durable and prices and budgets are known, with a limit
 * on silence. Every outcome is classified and billed. Rejects with a plain failure.
 */
export async function askModel<Output>(scope: AskScope, ask: AskOptions<Output>): Promise<Output> {
  const { parts, runtime, context, abort } = scope
  const { request: draftRequest, purpose, onToolCallDelta, onHostedCall, getKnownText } = ask
  const { config } = context
  // These steps run before any timer starts, because a slow store does not mean that the provider is silent.
  await runtime.waitUntilDurable()
  failures ??= await import('../models/to-model-failure.js')
  const { toModelFailure } = failures
  const request = withAcceptedMessages(draftRequest, parts.model, context)
  const hold = hasSharedBudgets(parts, runtime) ? await openHold(scope, request, toModelFailure) : null
  const idle = watchIdle(abort, config, draftRequest.stream, runtime.clock)
  const { prices } = runtime
  const bill = createBill({ model: parts.model, prices }, request, context)
  runtime.openBill = bill
  // Releases the budget even if the provider does not stop.
  const stopFollowing = hold && abort.follow(() => void hold.settleStopped(bill.getUsageSoFar()))
  let currentModel: NamedModel = parts.model
  // Set while the answer is awaited. An answer that is stopped midway must be priced synchronously.
  let isPricing = false
  const loadPrices = (): void => {
    if (isPricing) return
    isPricing = true
    void prices.load(parts.model.provider, parts.model.model)
  }
  try {
    abort.throwIfAborted()
    if (ask.needsPrice) await checkPriceKnown({ model: parts.model, prices }, config, context.usage.session)
    refuseUnsupportedMedia(request.messages, parts.model)
    checkPreflightBudget(request, context)
    const ready = ask.onSend?.()
    if (ready) await ready
    abort.throwIfAborted()
    for (const warning of parts.tools.leftOut ?? []) warnOnce(runtime, 'tool_left_out', warning)
    const measured = measureRequest(scope, request, purpose)
    const callbacks: Omit<ModelRequestOptions, 'signal'> = {
      onSent: loadPrices,
      onActivity: (kind) => {
        loadPrices()
        idle.onActivity(kind)
      },
      onDelta: (text, reasoning) => {
        bill.addDelta(text ?? '', reasoning ?? '')
        measured?.noteChunk()
        ask.onDelta(text ?? '', reasoning ?? '')
      },
      onWarning: (code, message) => warnOnce(runtime, code, message),
      runId: context.runId,
      onWaitForSlot: (wait) => {
        idle.hold(wait !== null)
        hold?.markAsked(wait === null)
        measured?.noteWait(wait)
        if (wait !== null) runtime.emit({ type: 'waiting_for_slot', stepId: getStepId(context), ...wait })
      },
      ...(onToolCallDelta && { onToolCallDelta }),
      ...(onHostedCall && { onHostedCall }),
      ...(measured && { around: (work) => measured.around(work) }),
      onFallback: (next, after, error) => {
        // The previous model's limiter may have failed during the wait.
        callbacks.onWaitForSlot?.(null)
        const failure = after && normalizeFailure(after)
        currentModel = next
        const spent = bill.switchModel(next, failure)
        void prices.load(next.provider, next.model)
        measured?.switchModel(next, failure, spent)
        if (failure !== null) {
          emitFallback(scope, next, failure)
          ask.onFallback?.()
        }
        idle.onActivity()
        return hold?.switchModel(next, failure, spent, error)
      },
    }
    hold?.markAsked(true)
    const send = () => parts.model.request(request, attachSignal(callbacks, idle.abort))
    const answer = await idle.rejectOnSilence(measured ? measured.around(send) : send())
    const response = normalizeResponse(answer, createCallNamer(runtime, context))
    measured?.noteResponse(response, answer)
    bill.receive(response, readOwnTotal(answer?.usage))
    if (hold) await hold.settleAnswer(await bill.getAnswerUsage(), response.usage !== null)
    return await ask.toOutput(response, () => bill.getAnswerUsage())
  } catch (error) {
    const silenced = idle.abort.aborted && !abort.aborted
    const reason = silenced ? idle.abort.reason : error
    const failure = withoutOurCode(toModelFailure(reason, runtime.clock.now()), reason)
    const usage = await bill.getFailureUsage(failure)
    if (hold) await hold.settleFailure(failure, usage, reason)
    const message = await screenFailureMessage(failure, reason, scope)
    const { refused, ...rest } = failure
    const refusal =
      refused && purpose !== 'summary' && getKnownText(failure.partialText) === ''
        ? toRefusal(refused, request.messages, currentModel, context)
        : null
    const plain: ModelActorError = {
      ...rest,
      message,
      partialText: getKnownText(failure.partialText),
      usage,
      jitter: toJitter(getPlatform().random()),
      ...(refusal && { refusal }),
    }
    // The thrown error would still contain the text that a shield removed.
    throw message === failure.message ? rememberThrown(plain, reason) : plain
  } finally {
    idle.stop()
    stopFollowing?.()
    if (runtime.openBill === bill) runtime.openBill = null
  }
}

const loadHold = loadOnce(() => import('./budget-hold.js'))

/** Reserves the maximum cost of the request. Rejects with a plain failure if nothing was sent. */
async function openHold(
  scope: AskScope,
  request: ModelRequest,
  toModelFailure: typeof Failures.toModelFailure,
) {
  try {
    const { openBudgetHold } = await loadHold()
    return await openBudgetHold(scope, request)
  } catch (error) {
    scope.abort.throwIfAborted()
    const failure = withoutOurCode(toModelFailure(error, scope.runtime.clock.now()), error)
    const plain: ModelActorError = { ...failure, usage: null, jitter: toJitter(getPlatform().random()) }
    throw rememberThrown(plain, error)
  }
}

/** Removes refused content. A provider with fallback models does this per model. */
function withAcceptedMessages(request: ModelRequest, model: ModelProvider, { refusals }: AgentContext) {
  if (model.fallbacks) return refusals ? { ...request, refused: refusals } : request
  const messages = toAcceptedMessages(request.messages, refusals, model)
  return messages === request.messages ? request : { ...request, messages }
}

const warningsByRun = new WeakMap<AgentRuntime, Set<string>>()

function warnOnce(runtime: AgentRuntime, code: unknown, message: unknown): void {
  if (typeof code !== 'string' || typeof message !== 'string') return
  const warned = warningsByRun.get(runtime) ?? new Set()
  const words = toEvidence(message)
  if (warned.has(words)) return
  warningsByRun.set(runtime, warned.add(words))
  runtime.emit({ type: 'warning', code: truncate(scrubEvidence(code), 100), message: words })
}

/** Implements `budget.preflight`, which withholds a request whose input alone exceeds the budget. */
function checkPreflightBudget(request: ModelRequest, context: AgentContext): void {
  const { budget, limits } = context.config
  if (!budget.preflight || limits.tokenBudget === 0) return
  const needed = estimateRequestTokens(request)
  const left = getRemaining(getBudgetTotals(context), toBudgetLimits(context.config)).tokens ?? Infinity
  if (needed < left) return
  throw new OverBudgetError({
    kind: 'fatal',
    code: 'token_budget',
    message: `The next request needs about ${needed} tokens, but ${left} of limits.tokenBudget (${limits.tokenBudget}) are left. Raise it to continue.`,
  })
}

/** Providers can repeat the request in this message, so it passes the output shields like an answer. */
async function screenFailureMessage(
  { message }: ModelFailure,
  error: unknown,
  scope: AskScope,
): Promise<string> {
  if (scope.parts.shields.output.length === 0 || error instanceof OverBudgetError) return message
  const { screenText } = await loadScreening()
  const { action, content } = await screenText(scope.parts, scope, 'output', message)
  return action === 'block' ? withheldMessage : content
}

const withheldMessage = 'The provider failed. A shield withheld the error message.'

/** The next request does not wait for shields, so with output shields the provider's message is omitted. */
function emitFallback(
  { parts, runtime, context }: AskScope,
  { provider, model }: AskedModel,
  { code, message: text }: ModelFailure,
): void {
  const { attempt } = context
  const reason = parts.shields.output.length === 0 ? text : withheldMessage
  const message = `${reason} Asking ${model} (${provider}) instead.`
  runtime.emit({ type: 'retry', stepId: getStepId(context), attempt, delayMs: 0, code, message, model })
}

type NamedModel = Pick<ModelProvider, 'provider' | 'model' | 'endpoint'>

function measureRequest(
  { parts, runtime, context }: AskScope,
  request: ModelRequest,
  purpose: TelemetryRequestInfo['purpose'],
) {
  const { telemetry, clock } = runtime
  if (!telemetry) return undefined
  const start = (model: NamedModel, fallback: number): TelemetryRequestInfo => ({
    type: 'inference',
    purpose,
    step: context.steps + 1,
    attempt: context.attempt,
    fallback,
    request,
    ...identify(model),
    sentAt: clock.now(),
    waits: [],
    firstChunkAt: null,
    response: null,
    responseId: null,
    failure: null,
    usage: null,
  })
  let info = start(parts.model, 0)
  const around = <Value>(work: () => Value): Value => telemetry.around(info, work)
  return {
    around,
    noteChunk(): void {
      info.firstChunkAt ??= clock.now()
    },
    /** Null ends the wait for a limiter. */
    noteWait(wait: { limiter: string } | null): void {
      const now = clock.now()
      if (wait !== null) info.waits.push({ limiter: wait.limiter, since: now, until: null })
      else for (const one of info.waits) one.until ??= now
    },
    /** If the previous model failed, this is a new request. */
    switchModel(next: NamedModel, failure: ModelFailure | null, usage: Usage | null): void {
      if (failure === null) Object.assign(info, identify(next))
      else {
        Object.assign(info, { failure, usage })
        info = start(next, info.fallback + 1)
      }
      around(() => undefined)
    },
    /** The provider's response id is passed only to telemetry. */
    noteResponse(response: ModelResponse, { id }: ModelResponse): void {
      info.response = response
      info.responseId = typeof id === 'string' && id !== '' ? truncate(scrubEvidence(id), 200) : null
    },
  }
}

const identify = ({ provider, model, endpoint }: NamedModel) => {
  return { provider, model, endpoint: readEndpoint(endpoint) }
}

/** The endpoint reported by the provider, or null if its host or port is invalid. */
function readEndpoint(endpoint: NamedModel['endpoint']): TelemetryRequestInfo['endpoint'] {
  const { host, port }: { host?: unknown; port?: unknown } = endpoint ?? {}
  if (typeof host !== 'string' || !/^[\w.:-]{1,255}$/.test(host)) return null
  return typeof port === 'number' && Number.isInteger(port) && port > 0 && port < 65_536
    ? { host, port }
    : null
}
