import type { AnyEventObject, SnapshotFrom } from 'xstate'
import { isWatching } from '../../../guards/state.js'
import type { agentMachine } from '../../../machines/agent.machine.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import type { PartialAnswer } from '../../../machines/agent/machine-events.js'
import type { ModelOutput } from '../../../machines/agent/model-response.js'
import { expectArgument } from '../../core/base/values.js'
import { nameCall } from '../../core/models/calls.js'
import { createDoneActorEvent, createErrorActorEvent } from '../explore-options.js'
import {
  askingModel,
  listAnswerEvents,
  listVotes,
  listElicitationAnswers,
  deferringModel,
  delegatingModel,
  listModelEvents,
  listRefusingEvents,
  modelActorEvents,
  plannedConclusion,
  plannedModel,
  screenedModel,
  governedModel,
  expiringModel,
  listExpiryEvents,
  listExpiringQuestions,
  handingModel,
  skilledModel,
  sleepingModel,
  twoCalls,
  watchedModel,
  createCallsAllowed,
  createScreening,
  listShieldEvents,
  allOutcomes,
  listAskEvents,
  listChildEnd,
  listHandleEvents,
  listLeftEvents,
  listLoadEvents,
  listChildEvents,
  listDecisionEvents,
  listHandoffEvents,
  listSkillEvents,
  listSleepEvents,
  listToolEvents,
  chooseOutcomes,
} from './actor-events.js'
import {
  stampEvent,
  type Events,
  late,
  laterWakeTime,
  createConsultation,
  createFailure,
  createFitOutput,
  createUsage,
} from './actor-outcomes.js'
import { agentSnapshot } from './agent-state-key.js'

/** For actors that must not fail. */
const brokenActor = createFailure('fatal', 'internal')

/**
 * Every event that can happen to the agent machine in a state, under readable names: `model: text`, `cancel`,
 * `tool: denied`. Impossible events are omitted because each event multiplies the states. For example, no event
 * is late without a deadline, and with guards the model only calls tools or answers.
 *
 * @example
 * const { inputs } = agentSpace({ only: ['watching progress'], maxSteps: 1 })
 * const { paths } = generatePaths(agentMachine, { inputs, alphabet: listAgentEvents, serializeState: serializeAgentState, limit: 100_000 })
 */
export function listAgentEvents(snapshot: SnapshotFrom<typeof agentMachine>): Record<string, AnyEventObject> {
  expectArgument('listAgentEvents(snapshot)', snapshot, agentSnapshot)
  return renameCalls(listEvents(snapshot), snapshot.context)
}

/**
 * Gives calls ids that no earlier response of the session used. Ids include the step, because states that
 * differ only in earlier ids are one state of the explored graph.
 */
function renameCalls(events: Events, { messages, lastMessageNumber, steps }: AgentContext): Events {
  const used = new Set(
    messages.flatMap((message) =>
      message.role === 'assistant' ? (message.tool_calls ?? []).map(({ id }) => id) : [],
    ),
  )
  if (steps === 0 && used.size === 0) return events
  const rename = <Call extends { id: string }>(call: Call): Call => ({
    ...call,
    id: nameCall(steps === 0 ? call.id : `${call.id}${steps + 1}`, lastMessageNumber + 1, used),
  })
  return Object.fromEntries(
    Object.entries(events).map(([name, event]) => {
      if (!/^xstate\.done\.actor\.(model|conclusion)$/.test(event.type)) return [name, event]
      const output = event['output'] as ModelOutput
      const response = { ...output.response, toolCalls: output.response.toolCalls.map(rename) }
      return [name, { ...event, output: { ...output, response, calls: output.calls.map(rename) } }]
    }),
  )
}

function listEvents(snapshot: SnapshotFrom<typeof agentMachine>): Events {
  const { context, value } = snapshot
  const { config, state, deadline } = context
  const isRequesting = isModelAsked(value)
  if (isWatching(config.guardrails)) {
    return {
      cancel,
      ...(isRequesting && { ...watchedModel, ...modelActorEvents.conclusion.inTime }),
      ...(isRequesting && config.guardrails.terminalDelegation && twoCalls),
      ...watchedActors,
      ...createCallsAllowed(context),
      ...(isExecuting(value) && listToolEvents(context, chooseOutcomes(config))),
      ...(isExecuting(value) && config.guardrails.terminalDelegation && listChildEnd(context)),
      ...((state === 'PAUSED' || context.pausing) && { resume }),
    }
  }
  if (isSleepy(context)) {
    return {
      cancel,
      ...(!context.pausing && { pause }),
      ...(canSteer(context) && { steer }),
      'resumed in time': resumed,
      ...(isRequesting && sleepingModel),
      ...ownGuards,
      ...listShieldEvents(context),
      ...(isExecuting(value) && { ...listToolEvents(context, ['ok']), ...listSleepEvents(context) }),
      ...((state === 'PAUSED' || context.pausing) && { resume, 'resume later': resumeLater }),
    }
  }
  if (isAsking(context)) {
    return {
      cancel,
      ...(!context.pausing && { pause }),
      'resumed in time': resumed,
      ...(isRequesting && askingModel),
      ...(isExecuting(value) && { ...listToolEvents(context, ['ok']), ...listAskEvents(context) }),
      ...(canAnswer(value) && { ...listAnswerEvents(context), ...listElicitationAnswers(context) }),
      ...((state === 'PAUSED' || context.pausing) && { resume }),
    }
  }
  if (context.tools['pledge']) {
    return {
      cancel,
      'resumed in time': resumed,
      'resumed too late': { ...resumed, now: late },
      ...(isRequesting && expiringModel),
      ...(isExecuting(value) && {
        ...listToolEvents({ ...context, deadline: late }, ['ok']),
        ...listExpiringQuestions(context),
      }),
      ...createCallsAllowed(context),
      ...(canAnswer(value) && { ...listAnswerEvents(context), ...listExpiryEvents(context) }),
      ...(state === 'PAUSED' && { resume }),
    }
  }
  if (isDelegating(context)) {
    return {
      cancel,
      ...(!context.pausing && { pause }),
      ...(canSteer(context) && { steer }),
      'resumed in time': resumed,
      ...(isRequesting && { ...delegatingModel, 'left midway': leftMidway }),
      ...(isExecuting(value) && {
        ...listToolEvents(context, ['ok']),
        ...listChildEvents(context),
        ...listLeftEvents(context),
      }),
      ...(canAnswer(value) && listAnswerEvents(context)),
      ...((state === 'PAUSED' || context.pausing) && { resume }),
    }
  }
  if (isDeferring(context)) {
    return {
      cancel,
      'resumed in time': resumed,
      ...(isRequesting && deferringModel),
      ...ownGuards,
      ...(isExecuting(value) && { ...listToolEvents(context, ['ok']), ...listLoadEvents(context) }),
      ...(state === 'PAUSED' && { resume }),
    }
  }
  if (isSkilled(context)) {
    return {
      cancel,
      'resumed in time': resumed,
      ...(isRequesting && skilledModel),
      ...listShieldEvents(context),
      ...(isExecuting(value) && { ...listToolEvents(context, ['ok', 'error']), ...listSkillEvents(context) }),
    }
  }
  if (canHandOff(context)) {
    return {
      cancel,
      'resumed in time': resumed,
      ...(isRequesting && handingModel),
      ...listShieldEvents(context),
      ...(isExecuting(value) && {
        ...listToolEvents(context, ['ok', 'error']),
        ...listHandoffEvents(context),
      }),
      ...(canAnswer(value) && listAnswerEvents(context)),
    }
  }
  if (isGoverned(context)) {
    return {
      cancel,
      'resumed in time': resumed,
      ...(isRequesting && governedModel),
      ...listDecisionEvents(context),
      ...(isExecuting(value) && listToolEvents(context, ['ok'])),
      ...(canAnswer(value) && { ...listAnswerEvents(context), ...listVotes(context) }),
    }
  }
  if (isRefusing(context)) {
    return {
      cancel,
      ...(!context.pausing && { pause }),
      'resumed in time': resumed,
      ...(isRequesting && listRefusingEvents(context, isConcluding(value) ? 'conclusion' : 'model')),
      ...(isExecuting(value) && listToolEvents(context, ['ok'])),
      ...((state === 'PAUSED' || context.pausing) && { resume }),
    }
  }
  if (context.features.prepareStep) {
    return {
      cancel,
      ...(!context.pausing && { pause }),
      ...(canSteer(context) && { steer }),
      'resumed in time': resumed,
      ...listPlanEvents(context),
      ...listShieldEvents(context),
      ...(context.features.fitting && actors),
      ...(isRequesting && plannedModel),
      ...(isRequesting && config.limits.onNearBudget === 'conclude' && plannedConclusion),
      ...(isExecuting(value) && listToolEvents(context, ['ok'])),
      ...((state === 'PAUSED' || context.pausing) && { resume }),
    }
  }
  const hurried = deadline !== null
  return {
    cancel,
    ...(!context.pausing && { pause }),
    ...(canSteer(context) && { steer }),
    'resumed in time': createResumed(context),
    'store failed': storeFailed,
    ...(hurried && { deadline: deadlinePassed, 'resumed too late': { ...resumed, now: late } }),
    ...(isRequesting && { ...stoppedMidway, ...listModelEvents(context, hurried) }),
    ...(isRequesting && context.features.callShields && screenedModel),
    ...(isRequesting && hurried && { 'deadline midway': { ...deadlinePassed, partial } }),
    ...actors,
    ...(context.features.stopWhen && stoppingResults),
    ...(context.features.stopWhen && context.features.structuredOutput && unfitResults),
    ...(isEnding(context) && context.features.structuredOutput && endingResults),
    ...listShieldEvents(context),
    ...(isExecuting(value) && listToolEvents(context, allOutcomes)),
    ...(isExecuting(value) && keepsHandles(context) && listHandleEvents(context)),
    ...(canAnswer(value) && listAnswerEvents(context)),
    ...((state === 'PAUSED' || context.pausing) && { resume }),
  }
}

const cancel = stampEvent({ type: 'CANCEL' })
const partial: PartialAnswer = { text: 'Half an', usage: null }
const pause = stampEvent({ type: 'PAUSE' })
const resume = stampEvent({ type: 'RESUME' })
const resumeLater = stampEvent({ type: 'RESUME', at: laterWakeTime })
const steer = stampEvent({ type: 'STEER', text: 'Hurry.' })
const resumed = stampEvent({ type: 'RESUMED' })
/** Resumed by a program that has one more tool. */
function createResumed({ tools }: AgentContext): AnyEventObject {
  return { ...resumed, tools: { ...tools, write: { readOnly: false, idempotent: false, polling: false } } }
}

/** The process stops in the middle of a request. */
const leftMidway = stampEvent({ type: 'RELEASED', usage: createUsage(10) })

const deadlinePassed = stampEvent({ type: 'DEADLINE' }, late)
const storeFailed = stampEvent({
  type: 'STORE_FAILED',
  failure: { code: 'disk_full', message: 'The disk is full.' },
})

const stoppedMidway: Events = {
  'cancel midway': { ...cancel, partial },
  'store failed midway': { ...storeFailed, partial },
}

const actors: Events = {
  'back-off over': stampEvent(createDoneActorEvent('backOff')),
  'back-off failed': stampEvent(createErrorActorEvent('backOff', brokenActor)),
  'input blocked': stampEvent(
    createDoneActorEvent('inputShields', [
      { ...createScreening('block', 'Not that.'), index: 0, part: null },
    ]),
  ),
  'input shield failed': stampEvent(createErrorActorEvent('inputShields', brokenActor)),
  retrieved: stampEvent(createDoneActorEvent('retrieval', [{ source: 'handbook', text: 'What it says.' }])),
  'retrieval failed': stampEvent(createErrorActorEvent('retrieval', brokenActor)),
  'retrieval refused by a shared budget': stampEvent(
    createErrorActorEvent('retrieval', { ...createFailure('fatal', 'shared_budget'), budget: 'tenant' }),
  ),
  'all of it fits': stampEvent(createDoneActorEvent('fitting', createFitOutput(null))),
  fitted: stampEvent(
    createDoneActorEvent('fitting', createFitOutput({ head: 1, from: 2, note: 'One message was left out.' })),
  ),
  'fitted by a summary over budget': stampEvent(
    createDoneActorEvent('fitting', { ...createFitOutput(null), usage: createUsage(1_000) }),
  ),
  'does not fit': stampEvent(
    createErrorActorEvent('fitting', createFailure('context_overflow', 'context_overflow')),
  ),
  'fitting failed': stampEvent(createErrorActorEvent('fitting', brokenActor)),
  'call shield failed': stampEvent(createErrorActorEvent('callShields', brokenActor)),
  'output cleared': stampEvent(createDoneActorEvent('outputShields', createScreening('redact', 'Done.'))),
  'output blocked': stampEvent(createDoneActorEvent('outputShields', createScreening('block', 'Not that.'))),
  'output shield failed': stampEvent(createErrorActorEvent('outputShields', brokenActor)),
  'result shield failed': stampEvent(createErrorActorEvent('resultShields', brokenActor)),
  'own guards let the calls pass': stampEvent(createDoneActorEvent('callGuards', createConsultation())),
  'an own guard refuses the calls': stampEvent(
    createDoneActorEvent('callGuards', createConsultation('block')),
  ),
  'an own guard halts on the calls': stampEvent(
    createDoneActorEvent('callGuards', createConsultation('halt')),
  ),
  'own guards failed on the calls': stampEvent(createErrorActorEvent('callGuards', brokenActor)),
  'own guards let the results pass': stampEvent(createDoneActorEvent('resultGuards', createConsultation())),
  'an own guard nudges on the results': stampEvent(
    createDoneActorEvent('resultGuards', createConsultation('nudge')),
  ),
  'an own guard halts on the results': stampEvent(
    createDoneActorEvent('resultGuards', createConsultation('halt', 'pause')),
  ),
  'own guards failed on the results': stampEvent(createErrorActorEvent('resultGuards', brokenActor)),
  'tool runner ended': stampEvent(createDoneActorEvent('tools')),
  'tool runner failed': stampEvent(createErrorActorEvent('tools', brokenActor)),
}

const watchedActors: Events = Object.fromEntries(
  Object.entries(actors).filter(([name]) => /^(output cleared|own guards let the .* pass)$/.test(name)),
)

const ownGuards: Events = Object.fromEntries(
  Object.entries(actors).filter(([name]) => /^(own guards let|an own guard)/.test(name)),
)

const stoppingResults: Events = {
  'the results are the end': stampEvent(
    createDoneActorEvent('resultGuards', { ...createConsultation(), stops: true }),
  ),
}

const unfitResults: Events = {
  'the results are the end, and do not fit': stampEvent(
    createDoneActorEvent('resultGuards', {
      ...createConsultation(),
      stops: true,
      outputProblem: 'It is not an object.',
    }),
  ),
}

const endingResults: Events = {
  'the result does not fit': stampEvent(
    createDoneActorEvent('resultGuards', { ...createConsultation(), outputProblem: 'It is not an object.' }),
  ),
}

function isEnding({ tools }: AgentContext): boolean {
  return Object.values(tools).some(({ endsRun }) => endsRun)
}

/** The author's `prepareStep`: no change, or only the tool `look`. */
function listPlanEvents({ steps }: AgentContext): Events {
  const plan = { step: steps + 1 }
  return {
    'step prepared': stampEvent(createDoneActorEvent('plan', plan)),
    'step prepared, with one tool': stampEvent(createDoneActorEvent('plan', { ...plan, tools: ['look'] })),
    'step not prepared': stampEvent(createErrorActorEvent('plan', brokenActor)),
  }
}

/** Each of these features multiplies the states, so it is explored on its own. */
function isDeferring({ tools }: AgentContext): boolean {
  return tools['read']?.deferred === true
}

function isDelegating({ tools }: AgentContext): boolean {
  return tools['research']?.delegate === true
}

function isAsking({ tools }: AgentContext): boolean {
  return tools['book'] !== undefined
}

function isSleepy({ tools }: AgentContext): boolean {
  return tools['nap'] !== undefined
}

function isSkilled({ tools }: AgentContext): boolean {
  return tools['load_skill']?.skill === true
}

function isGoverned({ tools }: AgentContext): boolean {
  return tools['govern'] !== undefined
}

function isRefusing({ tools }: AgentContext): boolean {
  return tools['browse'] !== undefined
}

/** Also true for agents the conversation was handed to. */
function canHandOff({ tools, speaker, calls }: AgentContext): boolean {
  return (
    speaker !== null || calls.some(({ handoff }) => handoff) || tools['transfer_to_billing'] !== undefined
  )
}

function keepsHandles({ tools }: AgentContext): boolean {
  return Object.values(tools).some(({ keepsHandle }) => keepsHandle)
}

/** With input shields, each steering message adds states, so one is enough. */
function canSteer({ steering, features, messages }: AgentContext): boolean {
  const isScreened = features.inputShields && messages.some(({ data }) => data?.['reason'] === 'steering')
  return steering.length === 0 && !isScreened
}

/** Whether calls wait for an answer, now or later in the batch. */
function canAnswer(value: unknown): boolean {
  const { WAITING_FOR_INPUT: rest, WAITING_FOR_TOOL: work } = value as Record<string, string | undefined>
  return rest !== undefined || (work !== undefined && work.startsWith('screening')) || isExecuting(value)
}

function isModelAsked(value: unknown): boolean {
  const state = (value as { RUNNING?: { asking?: string } }).RUNNING?.asking
  return state === 'requesting' || state === 'concluding'
}

function isConcluding(value: unknown): boolean {
  return (value as { RUNNING?: { asking?: string } }).RUNNING?.asking === 'concluding'
}

function isExecuting(value: unknown): boolean {
  return (value as { WAITING_FOR_TOOL?: string }).WAITING_FOR_TOOL === 'executing'
}
