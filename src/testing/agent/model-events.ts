import type { AgentContext } from '../../../machines/agent/context.js'
import type { ModelActorError, ModelOutput } from '../../../machines/agent/model-response.js'
import { createDoneActorEvent, createErrorActorEvent } from '../space.js'
import { at, type Events, late } from './at.js'
import {
  delegationOutcomes,
  failure,
  modelFailures,
  modelOutcomes,
  objectOutcomes,
  screenedOutcomes,
} from './outcomes.js'

export const delegatingModel = answersOf('model', delegationOutcomes)
export const screenedModel = answersOf('model', screenedOutcomes)

export const watchedModel: Events = {
  'model: text': at(createDoneActorEvent('model', modelOutcomes.text)),
  'model: call': at(createDoneActorEvent('model', modelOutcomes.call)),
  'model: another call': at(createDoneActorEvent('model', modelOutcomes['another call'])),
}

export const twoCalls: Events = {
  'model: two calls': at(createDoneActorEvent('model', modelOutcomes['two calls'])),
}

export const ofModel = { model: eventsOfModel('model'), conclusion: eventsOfModel('conclusion') }
/** Where shields look at answers, nothing of one that breaks off is kept. */
const ofScreenedModel = {
  model: eventsOfModel('model', unheard),
  conclusion: eventsOfModel('conclusion', unheard),
}
const ofObjects = { ...answersOf('model', objectOutcomes), ...answersOf('conclusion', objectOutcomes) }

function answersOf(actor: 'model' | 'conclusion', outcomes: Record<string, ModelOutput>): Events {
  return Object.fromEntries(
    Object.entries(outcomes).map(([name, outcome]) => [
      `${actor}: ${name}`,
      at(createDoneActorEvent(actor, outcome)),
    ]),
  )
}

function eventsOfModel(
  actor: 'model' | 'conclusion',
  heard: (error: ModelActorError) => ModelActorError = (error) => error,
): { inTime: Events; late: Events } {
  const failures = Object.entries(modelFailures).map(([name, error]) => [
    `${actor}: ${name}`,
    at(createErrorActorEvent(actor, heard(error))),
  ])
  return {
    inTime: { ...answersOf(actor, modelOutcomes), ...(Object.fromEntries(failures) as Events) },
    late: { [`${actor}: text too late`]: at(createDoneActorEvent(actor, modelOutcomes.text), late) },
  }
}

/** A request that `budget.preflight` refuses is never made; without it, every request is. */
export function modelEvents({ config: { budget }, features }: AgentContext, hurried: boolean): Events {
  if (budget.preflight) return refusedRequest
  if (features.structuredOutput) return ofObjects
  const { model, conclusion } = features.outputShields ? ofScreenedModel : ofModel
  return { ...model.inTime, ...conclusion.inTime, ...(hurried && { ...model.late, ...conclusion.late }) }
}

const refusedRequest: Events = {
  'model: refused by the budget': at(createErrorActorEvent('model', failure('fatal', 'token_budget'))),
}

function unheard(error: ModelActorError): ModelActorError {
  return { ...error, partialText: '' }
}
