import { retryDelayMs } from '../../../guards/retry.js'
import { act } from '../act.js'
import { type AgentMachineEvent, timeOf } from '../events.js'
import type { AssistantMessage } from '../messages.js'
import type { Reason } from '../outcome.js'
import type { ModelActorError } from '../response.js'
import { messageId, stepIdOf } from '../step-id.js'
import { spend } from './spending.js'

/** A failed attempt: what it cost is counted, what went wrong is remembered. */
export const noteFailure = act((context, event, tell) => {
  const failure = failureOf(event)
  return {
    error: {
      code: failure.code,
      message: failure.message,
      recoverable: failure.kind !== 'fatal' && failure.kind !== 'context_overflow',
    },
    ...spend(context, failure.usage, tell),
  }
})

/** Why a run ends with a failure that it cannot mend. Of the parts of the loop itself, none should fail. */
export const becauseOfFailure = act((_context, event) => ({ reason: reasonOf(event) }))

function reasonOf(event: AgentMachineEvent): Reason {
  const { kind } = failureOf(event)
  // The context is fitted by an actor of its own, whose failures no event of the machine's list has.
  const isOfFitting = (event.type as string) === 'xstate.error.actor.fitting'
  const isOfModel = event.type === 'xstate.error.actor.model'
  if (kind === 'context_overflow' && (isOfModel || isOfFitting)) return 'context_overflow'
  if (!isOfModel) return 'internal'
  return kind === 'incomplete' ? 'incomplete_response' : 'provider_error'
}

/** The next attempt is announced, and made when it has been waited for. */
export const scheduleRetry = act((context, event, tell) => {
  const failure = failureOf(event)
  const { attempt: failed, rateLimits, config } = context
  const delayMs = retryDelayMs({ ...failure, attempt: failed, rateLimits }, config.retry, failure.jitter)
  const attempt = failed + 1
  const { code, message } = failure
  tell({ type: 'retry', stepId: stepIdOf(context), attempt, delayMs, code, message })
  return {
    attempt,
    rateLimits: rateLimits + (failure.kind === 'rate_limit' ? 1 : 0),
    backOffUntil: timeOf(event) + delayMs,
  }
})

/** The text of an answer that was stopped midway is kept and marked. */
export const keepPartial = act((context, event, tell) => {
  const { text, usage } = partialOf(event)
  const cost = spend(context, usage, tell, { isCut: true })
  if (text === '') return cost
  const message: AssistantMessage = {
    role: 'assistant',
    id: messageId(context.numbered + 1),
    createdAt: timeOf(event),
    content: text,
    data: { partial: true },
  }
  tell({ type: 'assistant_message', stepId: stepIdOf(context), message, partial: true })
  return {
    ...cost,
    messages: context.messages.concat(message),
    numbered: context.numbered + 1,
    output: context.pieces + text,
  }
})

export const warnOfConclusion = act((context, event, tell) => {
  const { code, message, usage } = failureOf(event)
  tell({
    type: 'warning',
    code: 'no_conclusion',
    message: `The last answer at the limit failed (${code}): ${message}`,
  })
  return spend(context, usage, tell)
})

function partialOf(event: AgentMachineEvent): { text: string; usage: ModelActorError['usage'] } {
  if ('partial' in event && event.partial) return event.partial
  const isAnswer = event.type === 'xstate.error.actor.model' || event.type === 'xstate.error.actor.conclusion'
  return { text: isAnswer ? failureOf(event).partialText : '', usage: null }
}

/** An actor's rejection with every field in place, whatever it was. */
function failureOf(event: AgentMachineEvent): ModelActorError {
  const error = 'error' in event ? (event.error as Partial<ModelActorError> | null | undefined) : undefined
  return {
    kind: error?.kind ?? 'fatal',
    code: error?.code ?? 'internal',
    message: error?.message ?? 'The model actor failed without saying why.',
    status: error?.status ?? null,
    retryAfterMs: error?.retryAfterMs ?? null,
    partialText: error?.partialText ?? '',
    usage: error?.usage ?? null,
    jitter: error?.jitter ?? 1,
  }
}
