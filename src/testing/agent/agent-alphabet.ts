import type { AnyEventObject, SnapshotFrom } from 'xstate'
import { isWatching } from '../../../guards/state.js'
import type { agentMachine } from '../../../machines/agent.machine.js'
import type { AgentContext, PartialAnswer } from '../../../machines/agent/context.js'
import type { ModelOutput } from '../../../machines/agent/model-response.js'
import { expectArgument } from '../../core/base/values.js'
import { nameCall } from '../../core/models/calls.js'
import * as actorEvents from './actor-events.js'
import {
  done,
  failed,
  modelOutcomes,
  stampEvent,
  type Events,
  early,
  late,
  laterWakeTime,
  createBudgetFailure,
  featureModels,
  createConsultation,
  createFailure,
  createFitOutput,
  createUsage,
} from './actor-outcomes.js'
import { agentSnapshot } from './agent-state-key.js'

const brokenActor = createFailure('fatal', 'internal')

/**
 * All events that can happen to the agent machine in a state, with readable names such as `model: text`, `cancel` and
 * `tool: denied`. Impossible events are omitted, because each event multiplies the number of states. For example, no
 * event is late without a deadline, and with guards the model only calls tools or answers.
 *
 * @example
 * const { inputs } = agentSpace({ only: ['watching progress'], maxSteps: 1 })
 * const { paths } = generatePaths(agentMachine, { inputs, alphabet: listAgentEvents, serializeState: serializeAgentState, limit: 100_000 })
 */
export function listAgentEvents(snapshot: SnapshotFrom<typeof agentMachine>): Record<string, AnyEventObject> {
  expectArgument('listAgentEvents(snapshot)', snapshot, agentSnapshot)
  return completeEvents(listEvents(snapshot), snapshot.context)
}

/**
 * Stamps the events, and gives calls ids that no earlier response in the session used. Ids include the step, because
 * states that differ only in earlier ids are one state of the explored graph.
 */
function completeEvents(events: Events, { messages, lastMessageNumber, steps }: AgentContext): Events {
  const used = new Set(
    messages.flatMap((message) =>
      message.role === 'assistant' ? (message.tool_calls ?? []).map(({ id }) => id) : [],
    ),
  )
  const isFirst = steps === 0 && used.size === 0
  const rename = <Call extends { id: string }>(call: Call): Call => ({
    ...call,
    id: nameCall(steps === 0 ? call.id : `${call.id}${steps + 1}`, lastMessageNumber + 1, used),
  })
  return Object.fromEntries(
    Object.entries(events).map(([name, event]) => {
      if (isFirst || !/^xstate\.done\.actor\.(model|conclusion)$/.test(event.type))
        return [name, 'now' in event ? event : stampEvent(event)]
      const output = event['output'] as ModelOutput
      const response = { ...output.response, toolCalls: output.response.toolCalls.map(rename) }
      return [name, { ...event, output: { ...output, response, calls: output.calls.map(rename) } }]
    }),
  )
}

function listEvents({ context, value }: SnapshotFrom<typeof agentMachine>): Events {
  const { config, deadline, features, tools } = context
  const { RUNNING: running, WAITING_FOR_INPUT: rest, WAITING_FOR_TOOL: work } = value as StatePlaces
  const asked = running?.asking
  const isRequesting = asked === 'requesting' || asked === 'concluding'
  const isExecuting = work === 'executing'
  // The calls wait for an answer, now or later in the batch.
  const canAnswer = rest !== undefined || isExecuting || work?.startsWith('screening') === true
  const isPaused = context.state === 'PAUSED'
  const pauses = { cancel, ...(!context.pausing && { pause }) }
  const steers = { ...pauses, ...(canSteer(context) && { steer }) }
  const isResumed = { resumed }
  const resumes = (isPaused || context.pausing !== false) && { resume }
  const execute = (outcomes: Parameters<typeof actorEvents.listToolEvents>[1], ...more: EventSource[]) =>
    isExecuting && merge(actorEvents.listToolEvents(context, outcomes), ...more.map((list) => list(context)))
  const answer = (...more: EventSource[]) =>
    canAnswer && merge(actorEvents.listAnswerEvents(context), ...more.map((list) => list(context)))
  const request = (...events: (Events | false)[]) => isRequesting && merge(...events)
  if (isWatching(config.guardrails)) {
    const isDelegating = config.guardrails.terminalDelegation !== null
    return merge(
      { cancel },
      request(featureModels.watched, actorEvents.conclusionEvents, isDelegating && twoCalls),
      watchedActors,
      actorEvents.createCallsAllowed(context),
      execute(actorEvents.chooseOutcomes(config), ...(isDelegating ? [actorEvents.listChildEnd] : [])),
      resumes,
    )
  }
  // Each of these features multiplies the number of states, so it is explored separately.
  if (tools['nap'])
    return merge(
      { ...steers, ...isResumed },
      request(featureModels.sleeping, actorEvents.waitForBudget),
      customGuards,
      actorEvents.listShieldEvents(context),
      execute(['ok'], actorEvents.listSleepEvents),
      resumes && { resume, 'resume at a later time': resumeLater },
    )
  if (tools['book'])
    return merge(
      { ...pauses, ...isResumed },
      request(featureModels.asking),
      execute(['ok'], actorEvents.listAskEvents),
      answer(actorEvents.listElicitationAnswers),
      resumes,
    )
  if (tools['pledge'])
    return merge(
      { cancel, ...isResumed, 'resumed after the deadline': { ...resumed, now: late } },
      request(featureModels.expiring),
      isExecuting && actorEvents.listToolEvents({ ...context, deadline: late }, ['ok']),
      isExecuting && actorEvents.listExpiringQuestions(context),
      actorEvents.createCallsAllowed(context),
      answer(actorEvents.listExpiryEvents),
      isPaused && { resume },
    )
  if (tools['lend'])
    return merge(
      { cancel, ...isResumed, 'resumed too late': { ...resumed, now: late } },
      request(featureModels.lending),
      execute(['ok'], actorEvents.listLeftEvents),
      canAnswer && actorEvents.listGrantEvents(context),
    )
  if (tools['research']?.delegate)
    return merge(
      { ...steers, ...isResumed },
      request(featureModels.delegating, { 'released mid-stream': releasedMidStream }),
      execute(['ok'], actorEvents.listChildEvents, actorEvents.listLeftEvents),
      answer(),
      resumes,
    )
  if (tools['read']?.deferred)
    return merge(
      { cancel, ...isResumed },
      request(featureModels.deferring),
      customGuards,
      execute(['ok'], actorEvents.listLoadEvents),
      isPaused && { resume },
    )
  if (tools['load_skill']?.skill)
    return merge(
      { cancel, ...isResumed },
      request(featureModels.skilled),
      actorEvents.listShieldEvents(context),
      execute(['ok', 'error'], actorEvents.listSkillEvents),
    )
  if (canHandOff(context))
    return merge(
      { cancel, ...isResumed },
      request(featureModels.handing),
      actorEvents.listShieldEvents(context),
      execute(['ok', 'error'], actorEvents.listHandoffEvents),
      answer(),
    )
  if (tools['govern'])
    return merge(
      { cancel, ...isResumed },
      request(featureModels.governed),
      actorEvents.listDecisionEvents(context),
      execute(['ok']),
      answer(actorEvents.listVotes),
    )
  if (tools['browse'])
    return merge(
      { ...pauses, ...isResumed },
      isRequesting &&
        actorEvents.listRefusingEvents(context, asked === 'concluding' ? 'conclusion' : 'model'),
      execute(['ok']),
      resumes,
    )
  const isNearEnd = config.limits.onNearBudget === 'conclude'
  if (features.prepareStep)
    return merge(
      { ...steers, ...isResumed },
      listPlanEvents(context),
      actorEvents.listShieldEvents(context),
      features.fitting && actors,
      // Only a few answers, because requests may fail and be retried.
      request(featureModels.planned, isNearEnd && plannedConclusion),
      execute(['ok']),
      resumes,
    )
  const isHurried = deadline !== null
  const isEnding = Object.values(tools).some(({ endsRun }) => endsRun)
  const keepsHandles = Object.values(tools).some(({ keepsHandle }) => keepsHandle)
  return merge(
    { ...steers, resumed: createResumed(context), 'store failed': storeFailed },
    isHurried && { deadline: deadlinePassed, 'resumed after the deadline': { ...resumed, now: late } },
    isRequesting && merge(stoppedMidStream, actorEvents.listModelEvents(context, isHurried)),
    request(
      features.callShields && featureModels.screened,
      isHurried && { 'deadline mid-stream': { ...deadlinePassed, partial } },
    ),
    actors,
    features.stopWhen === true && stoppingResults,
    features.stopWhen === true && features.structuredOutput && unfitResults,
    isEnding && features.structuredOutput && endingResults,
    actorEvents.listShieldEvents(context),
    execute(actorEvents.allOutcomes, ...(keepsHandles ? [actorEvents.listHandleEvents] : [])),
    answer(),
    resumes,
  )
}

interface StatePlaces {
  RUNNING?: { asking?: string }
  WAITING_FOR_INPUT?: string
  WAITING_FOR_TOOL?: string
}

type EventSource = (context: AgentContext) => Events

const merge = (...parts: (Events | false)[]): Events => Object.assign({}, ...parts) as Events

const cancel = { type: 'CANCEL', now: early }
const partial: PartialAnswer = { text: 'Half an', usage: null }
const pause = { type: 'PAUSE' }
const resume = { type: 'RESUME' }
const resumeLater = { type: 'RESUME', at: laterWakeTime }
const steer = { type: 'STEER', text: 'Hurry.' }
const resumed = { type: 'RESUMED', now: early }
/** The run is resumed by a program that has one more tool. */
function createResumed({ tools }: AgentContext): AnyEventObject {
  return { ...resumed, tools: { ...tools, write: { readOnly: false, idempotent: false, polling: false } } }
}

const releasedMidStream = { type: 'RELEASED', usage: createUsage(10) }

const deadlinePassed = { type: 'DEADLINE', now: late }
const storeFailed = {
  type: 'STORE_FAILED',
  failure: { code: 'disk_full', message: 'The disk is full.' },
  now: early,
}

const plannedConclusion: Events = { 'conclusion: text': done('conclusion', modelOutcomes.text) }
const twoCalls: Events = { 'model: two calls': done('model', modelOutcomes['two calls']) }

const stoppedMidStream: Events = {
  'cancel mid-stream': { ...cancel, partial },
  'store failed mid-stream': { ...storeFailed, partial },
}

const actors: Events = {
  'back-off elapsed': done('backOff'),
  'back-off failed': failed('backOff', brokenActor),
  'input blocked': done('inputShields', [
    { ...actorEvents.createScreening('block', 'Not that.'), index: 0, part: null },
  ]),
  'input shield failed': failed('inputShields', brokenActor),
  retrieved: done('retrieval', [{ source: 'handbook', text: 'What it says.' }]),
  'retrieval failed': failed('retrieval', brokenActor),
  'retrieval refused by a shared budget': failed('retrieval', createBudgetFailure()),
  'everything fits': done('fitting', createFitOutput(null)),
  trimmed: done('fitting', createFitOutput({ head: 1, from: 2, note: 'One message was left out.' })),
  'summarized over budget': done('fitting', { ...createFitOutput(null), usage: createUsage(1_000) }),
  'does not fit': failed('fitting', createFailure('context_overflow', 'context_overflow')),
  'fitting failed': failed('fitting', brokenActor),
  'call shield failed': failed('callShields', brokenActor),
  'output redacted': done('outputShields', actorEvents.createScreening('redact', 'Done.')),
  'output blocked': done('outputShields', actorEvents.createScreening('block', 'Not that.')),
  'output shield failed': failed('outputShields', brokenActor),
  'result shield failed': failed('resultShields', brokenActor),
  'custom guards allow the calls': done('callGuards', createConsultation()),
  'a custom guard blocks the calls': done('callGuards', createConsultation('block')),
  'a custom guard halts at the calls': done('callGuards', createConsultation('halt')),
  'custom guards failed at the calls': failed('callGuards', brokenActor),
  'custom guards allow the results': done('resultGuards', createConsultation()),
  'a custom guard nudges at the results': done('resultGuards', createConsultation('nudge')),
  'a custom guard halts at the results': done('resultGuards', createConsultation('halt', 'pause')),
  'custom guards failed at the results': failed('resultGuards', brokenActor),
  'tool runner ended': done('tools'),
  'tool runner failed': failed('tools', brokenActor),
}

const watchedActors: Events = Object.fromEntries(
  Object.entries(actors).filter(([name]) => /^(output redacted|custom guards allow the .*)$/.test(name)),
)

const customGuards: Events = Object.fromEntries(
  Object.entries(actors).filter(([name]) => /^(custom guards allow|a custom guard)/.test(name)),
)

const stopping = { ...createConsultation(), stops: true }
const outputProblem = 'It is not an object.'
const stoppingResults: Events = { 'the results end the run': done('resultGuards', stopping) }
const unfitResults: Events = {
  'the results end the run but do not match the schema': done('resultGuards', { ...stopping, outputProblem }),
}
const endingResults: Events = {
  'the result does not match the schema': done('resultGuards', { ...createConsultation(), outputProblem }),
}

/** Results of `prepareStep`: no change, or only the tool `look`. */
function listPlanEvents({ steps }: AgentContext): Events {
  const plan = { step: steps + 1 }
  return {
    'step prepared': done('plan', plan),
    'step prepared with one tool': done('plan', { ...plan, tools: ['look'] }),
    'step preparation failed': failed('plan', brokenActor),
  }
}

/** Whether the active agent can hand off. Also true for an agent that received the conversation. */
function canHandOff({ tools, speaker, calls }: AgentContext): boolean {
  return (
    speaker !== null || calls.some(({ handoff }) => handoff) || tools['transfer_to_billing'] !== undefined
  )
}

/** Whether to send a steering message. With input shields, each steering message adds states, so only one is sent. */
function canSteer({ steering, features, messages }: AgentContext): boolean {
  const isScreened = features.inputShields && messages.some(({ data }) => data?.['reason'] === 'steering')
  return steering.length === 0 && !isScreened
}
