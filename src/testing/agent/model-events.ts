import type { AgentContext } from '../../../machines/agent/context.js'
import type { ModelActorError, ModelOutput } from '../../../machines/agent/model-response.js'
import type { Refusal } from '../../../machines/agent/refusals.js'
import { toRefusal } from '../../core/models/leave-out.js'
import { createDoneActorEvent, createErrorActorEvent } from '../explore-options.js'
import {
  stampEvent,
  type Events,
  late,
  nextWindow,
  askingOutcomes,
  deferringOutcomes,
  delegationOutcomes,
  createFailure,
  createUsage,
  modelFailures,
  modelOutcomes,
  objectOutcomes,
  screenedOutcomes,
  governedOutcomes,
  handoffOutcomes,
  skillOutcomes,
  sleepingOutcomes,
} from './actor-outcomes.js'
import { listAnswerableCalls } from '../../../machines/agent/to-result.js'

export const askingModel = createAnswerEvents('model', askingOutcomes)
export const deferringModel = createAnswerEvents('model', deferringOutcomes)
export const delegatingModel = createAnswerEvents('model', delegationOutcomes)
export const sleepingModel: Events = {
  ...createAnswerEvents('model', sleepingOutcomes),
  'model: waits for a shared budget': stampEvent(
    createErrorActorEvent('model', {
      ...createFailure('fatal', 'shared_budget'),
      budget: 'tenant',
      wakeAt: nextWindow,
    }),
  ),
}
export const governedModel = createAnswerEvents('model', governedOutcomes)
export const handingModel = createAnswerEvents('model', handoffOutcomes)
export const skilledModel = createAnswerEvents('model', skillOutcomes)
export const screenedModel = createAnswerEvents('model', screenedOutcomes)

export const watchedModel: Events = {
  'model: text': stampEvent(createDoneActorEvent('model', modelOutcomes.text)),
  'model: call': stampEvent(createDoneActorEvent('model', modelOutcomes.call)),
  'model: another call': stampEvent(createDoneActorEvent('model', modelOutcomes['another call'])),
}

/** Plans are explored with few answers, because requests may fail and be retried. */
export const plannedModel: Events = {
  'model: text': stampEvent(createDoneActorEvent('model', modelOutcomes.text)),
  'model: two calls': stampEvent(createDoneActorEvent('model', modelOutcomes['two calls'])),
}

export const plannedConclusion: Events = {
  'conclusion: text': stampEvent(createDoneActorEvent('conclusion', modelOutcomes.text)),
}

export const twoCalls: Events = {
  'model: two calls': stampEvent(createDoneActorEvent('model', modelOutcomes['two calls'])),
}

export function listRefusingEvents(context: AgentContext, actor: 'model' | 'conclusion'): Events {
  const { messages, lastMessageNumber, refusals = [] } = context
  const model = { provider: 'localhost', model: 'm' }
  const request = { messages, transcript: messages, lastMessageNumber, model, refused: refusals }
  const refusal = toRefusal({ what: 'messages' }, request)
  const flag = (one: Refusal | null | undefined, tokens?: number): ModelActorError => ({
    ...createFailure('fatal', 'content_filter'),
    ...(one && { refusal: one }),
    ...(tokens !== undefined && { usage: createUsage(tokens) }),
  })
  const known = refusals.at(-1)
  return {
    [`${actor}: text`]: stampEvent(createDoneActorEvent(actor, modelOutcomes.text)),
    [`${actor}: call`]: stampEvent(createDoneActorEvent(actor, modelOutcomes.call)),
    [`${actor}: content flagged`]: stampEvent(createErrorActorEvent(actor, flag(refusal))),
    ...(actor === 'model' && {
      ...(known && { 'model: content flagged again': stampEvent(createErrorActorEvent(actor, flag(known))) }),
      'model: content flagged over budget': stampEvent(createErrorActorEvent(actor, flag(refusal, 1_000))),
    }),
  }
}

export const modelActorEvents = {
  model: createModelEvents('model'),
  conclusion: createModelEvents('conclusion'),
}
/** With output shields, partial text is not kept. */
const screenedActorEvents = {
  model: createModelEvents('model', dropPartialText),
  conclusion: createModelEvents('conclusion', dropPartialText),
}
const objectEvents = {
  ...createAnswerEvents('model', objectOutcomes),
  ...createAnswerEvents('conclusion', objectOutcomes),
}

function createAnswerEvents(actor: 'model' | 'conclusion', outcomes: Record<string, ModelOutput>): Events {
  return Object.fromEntries(
    Object.entries(outcomes).map(([name, outcome]) => [
      `${actor}: ${name}`,
      stampEvent(createDoneActorEvent(actor, outcome)),
    ]),
  )
}

function createModelEvents(
  actor: 'model' | 'conclusion',
  change: (error: ModelActorError) => ModelActorError = (error) => error,
): { inTime: Events; late: Events } {
  const failures = Object.entries(modelFailures).map(([name, error]) => [
    `${actor}: ${name}`,
    stampEvent(createErrorActorEvent(actor, change(error))),
  ])
  return {
    inTime: { ...createAnswerEvents(actor, modelOutcomes), ...(Object.fromEntries(failures) as Events) },
    late: { [`${actor}: text too late`]: stampEvent(createDoneActorEvent(actor, modelOutcomes.text), late) },
  }
}

/** With `budget.preflight`, requests are always refused; without it, never. */
export function listModelEvents({ config: { budget }, features }: AgentContext, hurried: boolean): Events {
  if (budget.preflight) return refusedRequest
  if (features.structuredOutput) return objectEvents
  const { model, conclusion } = features.outputShields ? screenedActorEvents : modelActorEvents
  return { ...model.inTime, ...conclusion.inTime, ...(hurried && { ...model.late, ...conclusion.late }) }
}

const refusedRequest: Events = {
  'model: refused by the budget': stampEvent(
    createErrorActorEvent('model', createFailure('fatal', 'token_budget')),
  ),
  'model: refused by a shared budget': stampEvent(
    createErrorActorEvent('model', { ...createFailure('fatal', 'shared_budget'), budget: 'tenant' }),
  ),
  'model: a shared budget that is away': stampEvent(
    createErrorActorEvent('model', {
      ...createFailure('fatal', 'shared_budget_unavailable'),
      budget: 'tenant',
    }),
  ),
}

function dropPartialText(error: ModelActorError): ModelActorError {
  return { ...error, partialText: '' }
}

export function listAnswerEvents(context: AgentContext): Events {
  const openThatNeeds = (needs: string): string =>
    listAnswerableCalls(context).find((call) => call.needs === needs)?.callId ?? 'nobody'
  const callId = openThatNeeds('approval')
  const clientCallId = openThatNeeds('client')
  if (context.state === 'WAITING_FOR_TOOL') return listEarlyAnswers(callId, clientCallId, context.features)
  // The log marks content pending review.
  const unheard = { ...(hasReasonShields(context.features) && { withheld: true as const }) }
  return {
    approve: stampEvent({ type: 'APPROVE', callId }),
    'approve an edit': stampEvent({
      type: 'APPROVE',
      callId,
      arguments: '{"n":2}',
      ...(context.features.callShields && { withheld: true }),
    }),
    'approve what the client runs': stampEvent({ type: 'APPROVE', callId: clientCallId }),
    reject: stampEvent({ type: 'REJECT', callId, why: 'No.', ...unheard }),
    'reject what the client runs': stampEvent({ type: 'REJECT', callId: clientCallId, why: 'No.' }),
    'hand in output': stampEvent({ type: 'TOOL_OUTPUT', callId: clientCallId, content: 'Picked.' }),
    'hand in for an approval': stampEvent({ type: 'TOOL_OUTPUT', callId, content: 'Picked.' }),
    reply: stampEvent({ type: 'REPLY', messages: [{ content: 'And now?' }] }),
  }
}

/** Answers to the open question of a tool, or to an earlier one. */
export function listElicitationAnswers(context: AgentContext): Events {
  const open = listAnswerableCalls(context).find(({ needs }) => needs === 'elicitation')
  const answer = { type: 'TOOL_OUTPUT', content: '{"action":"accept","content":{"seat":"12A"}}' }
  return {
    'answer what a tool asks': stampEvent({ ...answer, callId: open?.callId ?? 'a/ask' }),
    'answer what a tool asked before': stampEvent({
      ...answer,
      callId: open?.callId ?? 'a/ask',
      fingerprint: 'old',
    }),
  }
}

/** The reason of a rejection is user input and becomes the call's result, so both kinds of shields screen it. */
function hasReasonShields({ inputShields, resultShields }: AgentContext['features']): boolean {
  return inputShields || resultShields
}

/** Answers that arrive while other calls run. Without a pending call they match none. */
function listEarlyAnswers(callId: string, clientCallId: string, features: AgentContext['features']): Events {
  return {
    'approve meanwhile': stampEvent({ type: 'APPROVE', callId }),
    'reject meanwhile': stampEvent({
      type: 'REJECT',
      callId,
      why: 'No.',
      ...(hasReasonShields(features) && { withheld: true }),
    }),
    'hand in output meanwhile': stampEvent({ type: 'TOOL_OUTPUT', callId: clientCallId, content: 'Picked.' }),
    ...(features.callShields && {
      'approve an edit meanwhile': stampEvent({
        type: 'APPROVE',
        callId,
        arguments: '{"n":2}',
        withheld: true,
      }),
    }),
  }
}
