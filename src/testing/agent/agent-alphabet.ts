import type { AnyEventObject, SnapshotFrom } from 'xstate'
import { isWatching } from '../../../guards/state.js'
import type { agentMachine } from '../../../machines/agent.machine.js'
import type { AgentContext, PartialAnswer } from '../../../machines/agent/context.js'
import type { ModelOutput, ModelActorError } from '../../../machines/agent/model-response.js'
import { expectArgument } from '../../core/base/values.js'
import { nameCall } from '../../core/models/calls.js'
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
  createAnswerEvents,
  nextWindow,
  modelFailures,
  objectOutcomes,
  wakeTime,
  laterDecisions,
  toolOutcomes,
} from './actor-outcomes.js'
import { agentSnapshot } from './agent-state-key.js'
import type { PolicyVerdict } from '../../../machines/agent/approvals.js'
import type { Refusal } from '../../../machines/agent/refusals.js'
import { toRefusal } from '../../core/models/leave-out.js'
import { listAnswerableCalls } from '../../../machines/agent/questions.js'
import type { ToolResult } from '../../../machines/agent/batch-calls.js'
import type { AgentConfig } from '../../../machines/agent/config.js'
import { isUnderWay } from '../../../machines/agent/call-state.js'
import type { Elicitation, PendingCall } from '../../../machines/agent/run-result.js'
import type { Screening, ShieldAction } from '../../../machines/agent/screening.js'
import { listUnclearedCalls, listUnclearedInput } from '../../../machines/agent/mask-uncleared.js'

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
  const execute = (outcomes: Parameters<typeof listToolEvents>[1], ...more: EventSource[]) =>
    isExecuting && merge(listToolEvents(context, outcomes), ...more.map((list) => list(context)))
  const answer = (...more: EventSource[]) =>
    canAnswer && merge(listAnswerEvents(context), ...more.map((list) => list(context)))
  const request = (...events: (Events | false)[]) => isRequesting && merge(...events)
  if (isWatching(config.guardrails)) {
    const isDelegating = config.guardrails.terminalDelegation !== null
    return merge(
      { cancel },
      request(featureModels.watched, conclusionEvents, isDelegating && twoCalls),
      watchedActors,
      createCallsAllowed(context),
      execute(chooseOutcomes(config), ...(isDelegating ? [listChildEnd] : [])),
      resumes,
    )
  }
  // Each of these features multiplies the number of states, so it is explored separately.
  if (tools['nap'])
    return merge(
      { ...steers, ...isResumed },
      request(featureModels.sleeping, waitForBudget),
      customGuards,
      listShieldEvents(context),
      execute(['ok'], listSleepEvents),
      resumes && { resume, 'resume at a later time': resumeLater },
    )
  if (tools['book'])
    return merge(
      { ...pauses, ...isResumed },
      request(featureModels.asking),
      execute(['ok'], listAskEvents),
      answer(listElicitationAnswers),
      resumes,
    )
  if (tools['pledge'])
    return merge(
      { cancel, ...isResumed, 'resumed after the deadline': { ...resumed, now: late } },
      request(featureModels.expiring),
      isExecuting && listToolEvents({ ...context, deadline: late }, ['ok']),
      isExecuting && listExpiringQuestions(context),
      createCallsAllowed(context),
      answer(listExpiryEvents),
      isPaused && { resume },
    )
  if (tools['lend'])
    return merge(
      { cancel, ...isResumed, 'resumed too late': { ...resumed, now: late } },
      request(featureModels.lending),
      execute(['ok'], listLeftEvents),
      canAnswer && listGrantEvents(context),
    )
  if (tools['research']?.delegate)
    return merge(
      { ...steers, ...isResumed },
      request(featureModels.delegating, { 'released mid-stream': releasedMidStream }),
      execute(['ok'], listChildEvents, listLeftEvents),
      answer(),
      resumes,
    )
  if (tools['read']?.deferred)
    return merge(
      { cancel, ...isResumed },
      request(featureModels.deferring),
      customGuards,
      execute(['ok'], listLoadEvents),
      isPaused && { resume },
    )
  if (tools['load_skill']?.skill)
    return merge(
      { cancel, ...isResumed },
      request(featureModels.skilled),
      listShieldEvents(context),
      execute(['ok', 'error'], listSkillEvents),
    )
  if (canHandOff(context))
    return merge(
      { cancel, ...isResumed },
      request(featureModels.handing),
      listShieldEvents(context),
      execute(['ok', 'error'], listHandoffEvents),
      answer(),
    )
  if (tools['govern'])
    return merge(
      { cancel, ...isResumed },
      request(featureModels.governed),
      listDecisionEvents(context),
      execute(['ok']),
      answer(listVotes),
    )
  if (tools['browse'])
    return merge(
      { ...pauses, ...isResumed },
      isRequesting && listRefusingEvents(context, asked === 'concluding' ? 'conclusion' : 'model'),
      execute(['ok']),
      resumes,
    )
  const isNearEnd = config.limits.onNearBudget === 'conclude'
  if (features.prepareStep)
    return merge(
      { ...steers, ...isResumed },
      listPlanEvents(context),
      listShieldEvents(context),
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
    isRequesting && merge(stoppedMidStream, listModelEvents(context, isHurried)),
    request(
      features.callShields && featureModels.screened,
      isHurried && { 'deadline mid-stream': { ...deadlinePassed, partial } },
    ),
    actors,
    features.stopWhen === true && stoppingResults,
    features.stopWhen === true && features.structuredOutput && unfitResults,
    isEnding && features.structuredOutput && endingResults,
    listShieldEvents(context),
    execute(allOutcomes, ...(keepsHandles ? [listHandleEvents] : [])),
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
  'input blocked': done('inputShields', [{ ...createScreening('block', 'Not that.'), index: 0, part: null }]),
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
  'output redacted': done('outputShields', createScreening('redact', 'Done.')),
  'output blocked': done('outputShields', createScreening('block', 'Not that.')),
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

const pickActors = (names: RegExp): Events =>
  Object.fromEntries(Object.entries(actors).filter(([name]) => names.test(name)))

const watchedActors = pickActors(/^(output redacted|custom guards allow the .*)$/)
const customGuards = pickActors(/^(custom guards allow|a custom guard)/)

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

const waitForBudget: Events = {
  'model: waiting for a shared budget': failed(
    'model',
    createBudgetFailure(undefined, { wakeAt: nextWindow }),
  ),
}

function listRefusingEvents(context: AgentContext, actor: 'model' | 'conclusion'): Events {
  const { messages, refusals = [] } = context
  const refusal = toRefusal({ what: 'messages' }, messages, { provider: 'localhost', model: 'm' }, context)
  const flag = (one: Refusal | null | undefined, tokens?: number): ModelActorError => ({
    ...createFailure('fatal', 'content_filter'),
    ...(one && { refusal: one }),
    ...(tokens !== undefined && { usage: createUsage(tokens) }),
  })
  const known = refusals.at(-1)
  return {
    [`${actor}: text`]: done(actor, modelOutcomes.text),
    [`${actor}: call`]: done(actor, modelOutcomes.call),
    [`${actor}: content flagged`]: failed(actor, flag(refusal)),
    ...(actor === 'model' && {
      ...(known && { 'model: content flagged again': failed(actor, flag(known)) }),
      'model: content flagged over budget': failed(actor, flag(refusal, 1_000)),
    }),
  }
}

type Actor = 'model' | 'conclusion'

function createModelEvents(actor: Actor, change: Partial<ModelActorError> = {}): Events {
  const failures = Object.entries(modelFailures).map(
    ([name, error]) => [`${actor}: ${name}`, failed(actor, { ...error, ...change })] as const,
  )
  return { ...createAnswerEvents(actor, modelOutcomes), ...Object.fromEntries(failures) }
}

const createEvents = (create: (actor: Actor) => Events): Events => ({
  ...create('model'),
  ...create('conclusion'),
})

const conclusionEvents = createModelEvents('conclusion')
const plainEvents = createEvents(createModelEvents)
/** The events for agents with output shields, which do not keep partial text. */
const screenedEvents = createEvents((actor) => createModelEvents(actor, { partialText: '' }))
const objectEvents = createEvents((actor) => createAnswerEvents(actor, objectOutcomes))
const lateEvents = createEvents((actor) => ({
  [`${actor}: text after the deadline`]: done(actor, modelOutcomes.text, late),
}))

/** With `budget.preflight`, requests are always refused. Without it, they are never refused. */
function listModelEvents({ config: { budget }, features }: AgentContext, hurried: boolean): Events {
  if (budget.preflight) return refusedRequest
  if (features.structuredOutput) return objectEvents
  return { ...(features.outputShields ? screenedEvents : plainEvents), ...(hurried && lateEvents) }
}

const refusedRequest: Events = {
  'model: refused by the budget': failed('model', createFailure('fatal', 'token_budget')),
  'model: refused by a shared budget': failed('model', createBudgetFailure()),
  'model: shared budget unavailable': failed('model', createBudgetFailure('shared_budget_unavailable')),
}

function findAsked(context: AgentContext, needs: PendingCall['needs']): PendingCall | undefined {
  return listAnswerableCalls(context).find((call) => call.needs === needs)
}

const editedArguments = '{"n":2}'

function listAnswerEvents(context: AgentContext): Events {
  const callId = findAsked(context, 'approval')?.callId ?? 'nobody'
  const clientCallId = findAsked(context, 'client')?.callId ?? 'nobody'
  const { callShields, inputShields, resultShields } = context.features
  // The log marks content that is pending review.
  const unscreened = { ...(callShields && { withheld: true }) }
  // The reason for a rejection is user input and becomes the call's result, so both kinds of shields screen it.
  const unheard = { ...((inputShields || resultShields) && { withheld: true }) }
  const approve = { type: 'APPROVE', callId }
  const edit = { ...approve, arguments: editedArguments, ...unscreened }
  const reject = { type: 'REJECT', callId, why: 'No.', ...unheard }
  const output = { type: 'TOOL_OUTPUT', callId: clientCallId, content: 'Picked.' }
  // Answers that arrive while other calls run. Without a pending call, they match none.
  if (context.state === 'WAITING_FOR_TOOL')
    return {
      'approve during other calls': approve,
      'reject during other calls': reject,
      'submit output during other calls': output,
      ...(callShields && { 'approve an edit during other calls': edit }),
    }
  return {
    approve,
    'approve an edit': edit,
    'approve a client call': { type: 'APPROVE', callId: clientCallId },
    reject,
    'reject a client call': { type: 'REJECT', callId: clientCallId, why: 'No.' },
    'submit output': output,
    'submit output for an approval': { ...output, callId },
    reply: { type: 'REPLY', messages: [{ content: 'And now?' }] },
  }
}

function listVotes(context: AgentContext): Events {
  const asked = listAnswerableCalls(context).find((call) => call.needs === 'approval' && call.approvers)
  if (!asked) return {}
  const { callId } = asked
  const roles = { bob: ['finance'], cyd: ['finance'], ann: ['finance'], eve: ['sales'] }
  const by = (id: keyof typeof roles) => ({ by: { id, roles: roles[id] } })
  const people = Object.keys(roles) as (keyof typeof roles)[]
  const edit = { type: 'APPROVE', callId, arguments: editedArguments, ...by('bob') }
  const reject = { type: 'REJECT', callId, why: 'No.' }
  return {
    ...Object.fromEntries(
      people.map((id) => [`approve as ${id}`, { type: 'APPROVE', callId, ...by(id) }] as const),
    ),
    'approve an edit as bob': { ...edit, ...(context.features.callShields && { withheld: true }) },
    'reject as eve': { ...reject, ...by('eve') },
    'reject as ann': { ...reject, ...by('ann') },
  }
}

/** Time passes while questions are open, before or after an answer. */
function listExpiryEvents(context: AgentContext): Events {
  const callId =
    listAnswerableCalls(context).findLast(({ needs }) => needs === 'approval')?.callId ?? 'nobody'
  return {
    'approve the last question': { type: 'APPROVE', callId },
    'approve after expiry': { type: 'APPROVE', callId, now: late },
    'reject after expiry': { type: 'REJECT', callId, why: 'No.', now: late },
    'question expired': { type: 'APPROVAL_EXPIRED', now: late },
    'question expiry reported early': { type: 'APPROVAL_EXPIRED' },
  }
}

/** Grants that cover the open calls, once or for a time, and the end of grants and approvals. */
function listGrantEvents({ calls, grants = [] }: AgentContext): Events {
  const callId =
    calls.find(({ needs, result }) => needs === 'approval' && result === undefined)?.id ?? 'nobody'
  const approved = calls.find((call) => call.approved && !call.started)?.id ?? 'nobody'
  const granted = calls.findLast((call) => call.grant !== undefined && isUnderWay(call))?.id
  const bob = { by: { id: 'bob' } }
  const grant = { id: 'short', when: { n: { max: 1 } }, until: early + 1_000 }
  return {
    approve: { type: 'APPROVE', callId },
    'approve with a grant': { type: 'APPROVE', callId, grant: { id: 'once', uses: 1 }, ...bob },
    'approve after the grant has ended': { type: 'APPROVE', callId, now: late },
    'give a grant': { type: 'GRANT', tool: 'lend', grant, ...bob },
    'revoke a grant': { type: 'REVOKE', grant: grants[0]?.id ?? 'none' },
    'revoke an approval': { type: 'REVOKE', callId: approved },
    'revoke the approval of another': { type: 'REVOKE', callId: approved, by: { id: 'eve' } },
    ...(granted !== undefined && {
      'the grant of a call has ended': { type: 'GRANT_ENDED', callId: granted },
    }),
  }
}

/** A sub-agent asks two questions, and one of them expires. */
function listExpiringQuestions({ calls }: AgentContext): Events {
  const callId = findRunning(calls, 'research')
  if (callId === undefined) return {}
  const first = { ...createQuestion('q', 'approval'), expiresAt: early + 1_000 }
  const questions = [first, createQuestion('r', 'approval')]
  return { 'sub-agent: asks with a time limit': restChild(callId, questions) }
}

/** Answers to a tool's open question, or to an earlier one. */
function listElicitationAnswers(context: AgentContext): Events {
  const content = '{"action":"accept","content":{"seat":"12A"}}'
  const callId = findAsked(context, 'elicitation')?.callId ?? 'a/ask'
  const answer = { type: 'TOOL_OUTPUT', content, callId }
  return {
    'answer a tool question': answer,
    'answer an earlier tool question': { ...answer, fingerprint: 'old' },
  }
}

/** A process stops before it starts the last call. */
function listLeftEvents({ calls }: AgentContext): Events {
  const callId = calls.findLast(isUnderWay)?.id
  return callId === undefined ? {} : { 'released before a call': { type: 'RELEASED', notStarted: [callId] } }
}

const findRunning = (calls: AgentContext['calls'], name: string): string | undefined =>
  calls.find((call) => call.name === name && isUnderWay(call))?.id

const report = (callId: string, result: ToolResult) => ({ type: 'TOOL_RESULT', callId, result })

const restChild = (callId: string, questions: PendingCall[]) => ({ type: 'CHILD_WAITING', callId, questions })

const notLoaded = { status: 'not_loaded', content: 'Its schema.', durationMs: 0 } as const

type ToolOutcome = keyof typeof toolOutcomes
const allOutcomes = Object.keys(toolOutcomes) as ToolOutcome[]

function chooseOutcomes({ guardrails }: AgentConfig): ToolOutcome[] {
  if (guardrails.terminalDelegation) return ['ok', 'sub-agent out of quota']
  return ['ok', 'changed', 'error']
}

function listToolEvents({ calls, deadline }: AgentContext, outcomes: readonly ToolOutcome[]): Events {
  const started = calls.filter((call) => call.started)
  const open = started.filter((call) => call.result === undefined)
  const [call] = open
  const events: Events = {}
  if (call)
    for (const name of outcomes) {
      events[`tool: ${name}`] = report(call.id, call.unloaded ? notLoaded : toolOutcomes[name])
    }
  if (deadline !== null && events['tool: ok'])
    events['tool: ok after the deadline'] = { ...events['tool: ok'], now: late }
  if (open.length === started.length) events['tool runner gave up'] = { type: 'BATCH_DONE' }
  events['tool: result for an unknown call'] = report('nobody', toolOutcomes.ok)
  return events
}

/** Loads the same deferred tool twice, and once for a call that does not exist. */
function listLoadEvents({ calls }: AgentContext): Events {
  const callId = calls.find(isUnderWay)?.id
  const load = { type: 'TOOLS_LOADED', callId: 'nobody', names: ['read', 'read'] }
  return {
    ...(callId !== undefined && { 'tool: loads a tool': { ...load, callId } }),
    'tool: loads a tool for an unknown call': load,
  }
}

function listSkillEvents({ calls, skills }: AgentContext): Events {
  const callId = findRunning(calls, 'load_skill') ?? 'nobody'
  const change =
    skills.length > 0
      ? { action: 'unload', name: 'reading' }
      : { action: 'load', name: 'reading', hash: '0123456789abcdef', allowedTools: ['look'] }
  return { 'skill: changed': { type: 'SKILL_CHANGED', callId, change } }
}

/** Stores a handle: once, twice, and after the call has ended. */
function listHandleEvents({ calls, tools }: AgentContext): Events {
  const callId = calls.find((call) => tools[call.name]?.keepsHandle && isUnderWay(call))?.id ?? 'nobody'
  return { 'tool: saves a handle': { type: 'HANDLE_SAVED', callId, handle: 'job' } }
}

function listHandoffEvents({ calls, tools: own }: AgentContext): Events {
  const callId = calls.find((call) => own[call.name]?.handoff && isUnderWay(call))?.id ?? 'nobody'
  const tools = { look: { readOnly: true, idempotent: true, polling: false } }
  return { 'handoff: handed off': { type: 'HANDED_OFF', callId, to: 'billing', tools } }
}

function listSleepEvents({ calls }: AgentContext): Events {
  const open = calls.find(isUnderWay)
  if (open === undefined) return {}
  const { id: callId, name } = open
  if (name === 'research') {
    const rest = { ...restChild(callId, []), wakeAt: laterWakeTime }
    return { 'sub-agent: sleeps': rest, 'sub-agent: sleeps until a past time': { ...rest, wakeAt: 1 } }
  }
  const sleep = (wakeAt: number) => report(callId, { ...toolOutcomes.ok, wakeAt })
  return { 'tool: sleeps': sleep(wakeTime), 'tool: sleeps until a past time': sleep(1) }
}

function listAskEvents({ calls }: AgentContext): Events {
  const callId = findRunning(calls, 'book')
  if (callId === undefined) return {}
  const asks = (...ids: string[]) => ({
    ...restChild(callId, ids.map(createElicitation)),
    memo: ids.length,
  })
  return { 'tool: needs approval': asks('ask'), 'tool: asks two questions': asks('ask', 'too') }
}

function createElicitation(callId: string): PendingCall & { fromTool: true } {
  const schema: Elicitation['schema'] = { type: 'object', properties: { seat: { type: 'string' } } }
  const elicitation: Elicitation = { server: 'airline', message: 'Which seat?', mode: 'form', schema }
  const call = { callId, name: 'book', arguments: '{}', needs: 'elicitation' as const }
  return { fromTool: true, ...call, fingerprint: callId, elicitation }
}

/** A sub-agent fails permanently after spending the budget. */
function listChildEnd({ calls }: AgentContext): Events {
  const callId = calls.find(isUnderWay)?.id
  if (callId === undefined) return {}
  const failure = report(callId, toolOutcomes['sub-agent out of quota'])
  return { 'tool: sub-agent out of quota and over budget': { ...failure, usage: createUsage(1_000) } }
}

function listChildEvents({ calls }: AgentContext): Events {
  const callId = findRunning(calls, 'research')
  if (callId === undefined) return {}
  const rests = (...questions: PendingCall[]) => restChild(callId, questions)
  const reports = (tokens: number) => ({ type: 'CHILD_USAGE', callId, usage: createUsage(tokens) })
  const answer = report(callId, toolOutcomes.ok)
  const [approval, output] = [createQuestion('q', 'approval'), createQuestion('r', 'client')]
  return {
    'sub-agent: reports usage': reports(10),
    'sub-agent: reports usage over budget': reports(1_000),
    'sub-agent: answers with usage': { ...answer, usage: createUsage(10) },
    'sub-agent: answers with usage over budget': { ...answer, usage: createUsage(1_000) },
    'sub-agent: needs approval': rests(approval),
    'sub-agent: needs approval and client output': rests(approval, output),
    'sub-agent: needs client output': rests(output),
    'sub-agent: is paused': rests(),
    'sub-agent of an unknown call: reports usage': { ...reports(1_000), callId: 'nobody' },
  }
}

function createQuestion(callId: string, needs: 'approval' | 'client'): PendingCall {
  return { callId, name: 'transfer', arguments: '{"n":1}', needs, fingerprint: callId }
}

function listShieldEvents(context: AgentContext): Events {
  const messages = listUnclearedInput(context)
  const allowed = messages.map(({ content }, index) => ({
    ...createScreening('allow', typeof content === 'string' ? content : ''),
    index,
    part: null,
  }))
  const open = listUnclearedCalls(context)
  const unscreened = context.calls.filter((call) => call.unscreenedResult)
  return {
    ...(messages.length > 0 && { 'input allowed': done('inputShields', allowed) }),
    ...createCallsAllowed(context),
    ...(open.length > 0 && {
      'calls refused': done('callShields', screenCalls(open, 'block', 'Not that.')),
      'calls redacted': done('callShields', screenCalls(open, 'redact', redacted)),
    }),
    ...(unscreened.length > 0 && {
      'results allowed': done('resultShields', screenCalls(unscreened, 'allow', 'What it may say.')),
      'results withheld': done('resultShields', screenCalls(unscreened, 'block', 'What it may say.')),
    }),
  }
}

/** Policies decide on edited and redacted arguments. */
function listDecisionEvents(context: AgentContext): Events {
  const open = listUnclearedCalls(context)
  if (open.length === 0) return {}
  const screen = (content: string | undefined, decisions: readonly PolicyVerdict[] | undefined) =>
    screenCalls(open, content === undefined ? 'allow' : 'redact', content).map((screening) => ({
      ...screening,
      ...(decisions && { decisions: [...decisions] }),
    }))
  const events = Object.entries(laterDecisions).flatMap(([name, decisions]) => [
    [`calls allowed, policies: ${name}`, done('callShields', screen(undefined, decisions))] as const,
    [`calls redacted, policies: ${name}`, done('callShields', screen(redacted, decisions))] as const,
  ])
  return Object.fromEntries(events)
}

function createCallsAllowed(context: AgentContext): Events {
  return { 'calls allowed': done('callShields', screenCalls(listUnclearedCalls(context), 'allow')) }
}

const redacted = '{"n":0}'

/** The screenings of calls, by default with the arguments of each. */
const screenCalls = (calls: AgentContext['calls'], action: ShieldAction, content?: string) =>
  calls.map((call) => ({ ...createScreening(action, content ?? call.arguments), callId: call.id }))

function createScreening(action: ShieldAction, content: string): Screening {
  const message = action === 'block' ? content : null
  return { action, message, content, findings: [{ shield: 'own', action, message, durationMs: 1 }] }
}
