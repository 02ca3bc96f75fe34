import { omitUndefined } from '../../../guards/lib/json.js'
import { getRetryDelayMs } from '../../../guards/retry.js'
import { toAction } from '../update-action.js'
import { type AgentMachineEvent, getEventTime, type AgentContext } from '../context.js'
import { getStepId } from '../messages.js'
import type { ModelActorError } from '../model-response.js'
import { addRefusal, countAttempts, isNewRefusal, readRefusal } from '../refusals.js'
import { findBudgetWait } from './sleep.js'
import { withOwnAnswer } from './update-transcript.js'
import { spendUsage } from './spend-usage.js'

export const noteFailure = toAction((context, event, emit) => {
  const { kind, code, message, budget, usage } = readActorError(event)
  const recoverable = findBudgetWait(event) !== null || (kind !== 'fatal' && kind !== 'context_overflow')
  return {
    error: { code, message, recoverable, ...omitUndefined({ budget }) },
    ...rememberRefusal(context, event),
    ...spendUsage(context, usage, emit),
  }
})

export const leaveOutRefused = toAction((context, event, emit) => {
  const { message, usage } = readActorError(event)
  const refusal = readRefusal(event)
  const what = refusal === null ? 'some content' : refusedNames[refusal.what]
  emit({
    type: 'warning',
    code: 'content_refused',
    message: `The provider refused ${what}: ${message} The request will be sent again without this content, as will later requests of the session.`,
  })
  return {
    attempt: context.attempt + 1,
    resends: (context.resends ?? 0) + 1,
    ...rememberRefusal(context, event),
    ...spendUsage(context, usage, emit),
  }
})

const refusedNames = {
  messages: 'the content of messages',
  media: 'images, audio or documents',
  reasoning: 'stored reasoning',
}

function rememberRefusal(
  { refusals = [] }: AgentContext,
  event: AgentMachineEvent,
): Partial<Pick<AgentContext, 'refusals'>> {
  const refusal = readRefusal(event)
  if (refusal === null || !isNewRefusal(refusals, refusal)) return {}
  return { refusals: addRefusal(refusals, refusal) }
}

export const setFailureReason = toAction((_context, event) => {
  const { kind, budget } = readActorError(event)
  const isOfModel = event.type === 'xstate.error.actor.model'
  if (kind === 'context_overflow' && (isOfModel || event.type === 'xstate.error.actor.fitting'))
    return { reason: 'context_overflow' }
  // The budget store failed, so no request was sent to the provider.
  if (budget !== undefined) return { reason: 'shared_budget' }
  if (!isOfModel) return { reason: 'internal' }
  return { reason: kind === 'incomplete' ? 'incomplete_response' : 'provider_error' }
})

export const scheduleRetry = toAction((context, event, emit) => {
  const failure = readActorError(event)
  const { rateLimits, config } = context
  const failed = { ...failure, attempt: countAttempts(context), rateLimits }
  const delayMs = getRetryDelayMs(failed, config.retry, failure.jitter)
  const attempt = context.attempt + 1
  const { code, message } = failure
  emit({ type: 'retry', stepId: getStepId(context), attempt, delayMs, code, message })
  return {
    attempt,
    rateLimits: rateLimits + (failure.kind === 'rate_limit' ? 1 : 0),
    backOffUntil: getEventTime(event) + delayMs,
  }
})

export const keepPartial = toAction((context, event, emit) => {
  const { text, usage } = readPartialAnswer(event)
  const cost = spendUsage(context, usage, emit, { isCut: true })
  if (text === '') return cost
  return {
    ...cost,
    ...withOwnAnswer(context, text, { partial: true }, getEventTime(event), emit),
    output: context.continuedText + text,
  }
})

export const warnOfConclusion = toAction((context, event, emit) => {
  const { code, message, usage } = readActorError(event)
  emit({
    type: 'warning',
    code: 'no_conclusion',
    message: `The final answer at the limit failed (${code}): ${message}`,
  })
  return spendUsage(context, usage, emit)
})

function readPartialAnswer(event: AgentMachineEvent): { text: string; usage: ModelActorError['usage'] } {
  if ('partial' in event && event.partial) return event.partial
  const isAnswer = event.type === 'xstate.error.actor.model' || event.type === 'xstate.error.actor.conclusion'
  return { text: isAnswer ? readActorError(event).partialText : '', usage: null }
}

function readActorError(event: AgentMachineEvent): ModelActorError {
  const error = ('error' in event ? event.error : null) as Partial<ModelActorError> | null | undefined
  return {
    kind: error?.kind ?? 'fatal',
    code: error?.code ?? 'internal',
    message: error?.message ?? 'The model actor failed without a reason.',
    status: error?.status ?? null,
    retryAfterMs: error?.retryAfterMs ?? null,
    partialText: error?.partialText ?? '',
    usage: error?.usage ?? null,
    jitter: error?.jitter ?? 1,
    ...omitUndefined({ budget: error?.budget }),
  }
}
