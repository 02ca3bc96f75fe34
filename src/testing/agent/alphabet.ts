import { expectArgument } from '../../core/base/expect-argument.js'
import { agentSnapshot } from './state-key.js'
import type { AnyEventObject, SnapshotFrom } from 'xstate'
import type { agentMachine } from '../../../machines/agent.machine.js'
import type { AgentConfig } from '../../../machines/agent/config.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import { isUnderWay } from '../../../machines/agent/in-doubt.js'
import type { PartialAnswer } from '../../../machines/agent/events.js'
import type { PendingCall } from '../../../machines/agent/outcome.js'
import { answerableCalls } from '../../../machines/agent/result-of.js'
import type { ModelActorError, ModelOutput } from '../../../machines/agent/response.js'
import type { Screening, ShieldAction } from '../../../machines/agent/screening.js'
import { uncheckedCalls, unscreenedInput } from '../../../machines/agent/unscreened.js'
import { doneActor, errorActor } from '../space.js'
import {
  delegationOutcomes,
  failure,
  modelFailures,
  modelOutcomes,
  objectOutcomes,
  screenedOutcomes,
  toolOutcomes,
  usageOf,
  consultation,
  fitting,
} from './outcomes.js'
import { isWatching } from '../../../guards/state.js'

/** When everything of an exploration happens, and a time after every deadline. */
export const early = 1_000
export const late = 1_000_000

/** An actor that must not fail has failed. */
const broken = failure('fatal', 'internal')
type Events = Record<string, AnyEventObject>

/**
 * Every event that the agent machine can meet in a state, under names that people use: `model: text`, `cancel`,
 * `tool: denied`. What cannot happen there is left out, because each event multiplies the states: nothing is late
 * without a deadline, and where guards watch the calls, the model only calls and speaks.
 *
 * @example
 * const { inputs } = agentSpace({ only: ['watching progress'], maxSteps: 1 })
 * const { paths } = coverPaths(agentMachine, { inputs, alphabet: agentAlphabet, serializeState: agentStateKey, limit: 100_000 })
 */
export function agentAlphabet(snapshot: SnapshotFrom<typeof agentMachine>): Events {
  expectArgument('agentAlphabet(snapshot)', snapshot, agentSnapshot)
  const { context, value } = snapshot
  const { config, state, deadline } = context
  const asked = isAsked(value)
  if (isWatching(config.guardrails)) {
    return {
      cancel,
      ...(asked && { ...watchedModel, ...ofModel.conclusion.inTime }),
      ...(asked && config.guardrails.terminalDelegation && twoCalls),
      ...watchedActors,
      ...callsAllowed(context),
      ...(isExecuting(value) && ofTools(context, watchedOutcomes(config))),
      ...(isExecuting(value) && config.guardrails.terminalDelegation && lastWordOfChild(context)),
      ...(state === 'PAUSED' && { resume }),
    }
  }
  if (isDelegating(context)) {
    return {
      cancel,
      ...(!context.pausing && { pause }),
      ...(maySteer(context) && { steer }),
      'resumed in time': resumed,
      ...(asked && { ...delegatingModel, 'left midway': left }),
      ...(isExecuting(value) && {
        ...ofTools(context, ['ok']),
        ...ofChildren(context),
        ...leftBehind(context),
      }),
      ...(mayAnswer(value) && ofPeople(context)),
      ...(state === 'PAUSED' && { resume }),
    }
  }
  const hurried = deadline !== null
  return {
    cancel,
    ...(!context.pausing && { pause }),
    ...(maySteer(context) && { steer }),
    'resumed in time': resumedBy(context),
    'store failed': storeFailed,
    ...(hurried && { deadline: passed, 'resumed too late': { ...resumed, now: late } }),
    ...(asked && { ...stoppedMidway, ...modelEvents(context, hurried) }),
    ...(asked && context.features.callShields && screenedModel),
    ...(asked && hurried && { 'deadline midway': { ...passed, partial } }),
    ...actors,
    ...ofShields(context),
    ...(isExecuting(value) && ofTools(context, everyOutcome)),
    ...(mayAnswer(value) && ofPeople(context)),
    ...(state === 'PAUSED' && { resume }),
  }
}

const cancel = at({ type: 'CANCEL' })
const partial: PartialAnswer = { text: 'Half an', usage: null }
const pause = at({ type: 'PAUSE' })
const resume = at({ type: 'RESUME' })
const steer = at({ type: 'STEER', text: 'Hurry.' })
const resumed = at({ type: 'RESUMED' })
/** By a program that has one tool more. */
function resumedBy({ tools }: AgentContext): AnyEventObject {
  return { ...resumed, tools: { ...tools, write: { readOnly: false, idempotent: false, polling: false } } }
}
/** A process stops in the middle of a request. */
const left = at({ type: 'LEFT', usage: usageOf(10) })
/** A process stops before it has begun the last of its calls. */
function leftBehind({ calls }: AgentContext): Events {
  const callId = calls.findLast(isUnderWay)?.id
  return callId === undefined ? {} : { 'left before a call': at({ type: 'LEFT', unbegun: [callId] }) }
}
const passed = at({ type: 'DEADLINE' }, late)
const storeFailed = at({
  type: 'STORE_FAILED',
  failure: { code: 'disk_full', message: 'The disk is full.' },
})

const stoppedMidway: Events = {
  'cancel midway': { ...cancel, partial },
  'store failed midway': { ...storeFailed, partial },
}

const delegatingModel = answersOf('model', delegationOutcomes)
const screenedModel = answersOf('model', screenedOutcomes)

const watchedModel: Events = {
  'model: text': at(doneActor('model', modelOutcomes.text)),
  'model: call': at(doneActor('model', modelOutcomes.call)),
  'model: another call': at(doneActor('model', modelOutcomes['another call'])),
}

const actors: Events = {
  'back-off over': at(doneActor('backOff')),
  'back-off failed': at(errorActor('backOff', broken)),
  'input blocked': at(
    doneActor('inputShields', [{ ...screening('block', 'Not that.'), index: 0, part: null }]),
  ),
  'input shield failed': at(errorActor('inputShields', broken)),
  retrieved: at(doneActor('retrieval', [{ source: 'handbook', text: 'What it says.' }])),
  'retrieval failed': at(errorActor('retrieval', broken)),
  'all of it fits': at(doneActor('fitting', fitting(null))),
  fitted: at(doneActor('fitting', fitting({ head: 1, from: 2, note: 'One message was left out.' }))),
  'fitted by a summary over budget': at(doneActor('fitting', { ...fitting(null), usage: usageOf(1_000) })),
  'does not fit': at(errorActor('fitting', failure('context_overflow', 'context_overflow'))),
  'fitting failed': at(errorActor('fitting', broken)),
  'call shield failed': at(errorActor('callShields', broken)),
  'output cleared': at(doneActor('outputShields', screening('redact', 'Done.'))),
  'output blocked': at(doneActor('outputShields', screening('block', 'Not that.'))),
  'output shield failed': at(errorActor('outputShields', broken)),
  'result shield failed': at(errorActor('resultShields', broken)),
  'own guards let the calls pass': at(doneActor('callGuards', consultation())),
  'an own guard refuses the calls': at(doneActor('callGuards', consultation('block'))),
  'an own guard halts on the calls': at(doneActor('callGuards', consultation('halt'))),
  'own guards failed on the calls': at(errorActor('callGuards', broken)),
  'own guards let the results pass': at(doneActor('resultGuards', consultation())),
  'an own guard nudges on the results': at(doneActor('resultGuards', consultation('nudge'))),
  'an own guard halts on the results': at(doneActor('resultGuards', consultation('halt', 'pause'))),
  'own guards failed on the results': at(errorActor('resultGuards', broken)),
  'tool runner ended': at(doneActor('tools')),
  'tool runner failed': at(errorActor('tools', broken)),
}

const twoCalls: Events = { 'model: two calls': at(doneActor('model', modelOutcomes['two calls'])) }

const watchedActors: Events = Object.fromEntries(
  Object.entries(actors).filter(([name]) => /^(output cleared|own guards let the .* pass)$/.test(name)),
)

const ofModel = { model: eventsOfModel('model'), conclusion: eventsOfModel('conclusion') }
/** Where shields look at answers, nothing of one that breaks off is kept. */
const ofScreenedModel = {
  model: eventsOfModel('model', unheard),
  conclusion: eventsOfModel('conclusion', unheard),
}
const ofObjects = { ...answersOf('model', objectOutcomes), ...answersOf('conclusion', objectOutcomes) }

function answersOf(actor: 'model' | 'conclusion', outcomes: Record<string, ModelOutput>): Events {
  return Object.fromEntries(
    Object.entries(outcomes).map(([name, outcome]) => [`${actor}: ${name}`, at(doneActor(actor, outcome))]),
  )
}

function eventsOfModel(
  actor: 'model' | 'conclusion',
  heard: (error: ModelActorError) => ModelActorError = (error) => error,
): { inTime: Events; late: Events } {
  const failures = Object.entries(modelFailures).map(([name, error]) => [
    `${actor}: ${name}`,
    at(errorActor(actor, heard(error))),
  ])
  return {
    inTime: { ...answersOf(actor, modelOutcomes), ...(Object.fromEntries(failures) as Events) },
    late: { [`${actor}: text too late`]: at(doneActor(actor, modelOutcomes.text), late) },
  }
}

/** A request that `budget.preflight` refuses is never made; without it, every request is. */
function modelEvents({ config: { budget }, features }: AgentContext, hurried: boolean): Events {
  if (budget.preflight) return refusedRequest
  if (features.structuredOutput) return ofObjects
  const { model, conclusion } = features.outputShields ? ofScreenedModel : ofModel
  return { ...model.inTime, ...conclusion.inTime, ...(hurried && { ...model.late, ...conclusion.late }) }
}

const refusedRequest: Events = {
  'model: refused by the budget': at(errorActor('model', failure('fatal', 'token_budget'))),
}

/** A runner reports each call that it has started, or gives up before the first. */
function ofTools({ calls, deadline }: AgentContext, outcomes: readonly ToolOutcome[]): Events {
  const started = calls.filter((call) => call.started)
  const open = started.filter((call) => call.result === undefined)
  const events: Events = {}
  for (const name of outcomes) {
    const [call] = open
    if (call)
      events[`tool: ${name}`] = at({ type: 'TOOL_RESULT', callId: call.id, result: toolOutcomes[name] })
  }
  if (deadline !== null && events['tool: ok'])
    events['tool: ok, too late'] = { ...events['tool: ok'], now: late }
  if (open.length === started.length) events['tool runner gave up'] = at({ type: 'BATCH_DONE' })
  events['tool: result of nobody’s call'] = at({
    type: 'TOOL_RESULT',
    callId: 'nobody',
    result: toolOutcomes.ok,
  })
  return events
}

/** A sub-agent that cannot go on, and has used the budget up besides. */
function lastWordOfChild({ calls }: AgentContext): Events {
  const callId = calls.find(isUnderWay)?.id
  if (callId === undefined) return {}
  const result = toolOutcomes['child out of quota']
  return {
    'tool: child out of quota, all spent': at({ type: 'TOOL_RESULT', callId, result, usage: usageOf(1_000) }),
  }
}

/** What sub-agents tell while they work: the first of those that do. */
function ofChildren({ calls }: AgentContext): Events {
  const callId = calls.find(({ name, started, result }) => name === 'research' && started && !result)?.id
  if (callId === undefined) return {}
  const rests = (questions: PendingCall[]): AnyEventObject => at({ type: 'CHILD_RESTS', callId, questions })
  return {
    'sub-agent: spends': at({ type: 'CHILD_USAGE', callId, usage: usageOf(10) }),
    'sub-agent: spends it all': at({ type: 'CHILD_USAGE', callId, usage: usageOf(1_000) }),
    'sub-agent: answers, and has spent': at({
      type: 'TOOL_RESULT',
      callId,
      result: toolOutcomes.ok,
      usage: usageOf(10),
    }),
    'sub-agent: answers, and has spent it all': at({
      type: 'TOOL_RESULT',
      callId,
      result: toolOutcomes.ok,
      usage: usageOf(1_000),
    }),
    'sub-agent: asks a person': rests([question('q', 'approval')]),
    'sub-agent: asks a person and the client': rests([question('q', 'approval'), question('r', 'client')]),
    'sub-agent: asks the client': rests([question('r', 'client')]),
    'sub-agent: is paused': rests([]),
    'sub-agent of nobody’s call: spends': at({
      type: 'CHILD_USAGE',
      callId: 'nobody',
      usage: usageOf(1_000),
    }),
  }
}

function question(callId: string, needs: PendingCall['needs']): PendingCall {
  return { callId, name: 'transfer', arguments: '{"n":1}', needs, fingerprint: callId }
}

/** Sub-agents double what can happen: they are on their own. */
function isDelegating({ tools }: AgentContext): boolean {
  return tools['research']?.delegate === true
}

type ToolOutcome = keyof typeof toolOutcomes
const everyOutcome = Object.keys(toolOutcomes) as ToolOutcome[]

/** What the guards that are on tell apart. */
function watchedOutcomes({ guardrails }: AgentConfig): ToolOutcome[] {
  if (guardrails.terminalDelegation) return ['ok', 'child out of quota']
  return ['ok', 'changed', 'error']
}

/** Where input is screened, each piece of steering is a state of its own: one is enough. */
function maySteer({ steering, features, messages }: AgentContext): boolean {
  const isScreened = features.inputShields && messages.some(({ data }) => data?.['reason'] === 'steering')
  return steering.length === 0 && !isScreened
}

/** What shields say of the messages and calls at hand. */
function ofShields(context: AgentContext): Events {
  const messages = unscreenedInput(context)
  const allowed = messages.map(({ content }, index) => ({
    ...screening('allow', typeof content === 'string' ? content : ''),
    index,
    part: null,
  }))
  const open = uncheckedCalls(context)
  const unscreened = context.calls.filter((call) => call.unscreened)
  const results = (action: ShieldAction) =>
    unscreened.map(({ id }) => ({ ...screening(action, 'What it may say.'), callId: id }))
  return {
    ...(messages.length > 0 && { 'input allowed': at(doneActor('inputShields', allowed)) }),
    ...callsAllowed(context),
    ...(open.length > 0 && {
      'calls refused': at(
        doneActor(
          'callShields',
          open.map(({ id }) => ({ ...screening('block', 'Not that.'), callId: id })),
        ),
      ),
      'calls redacted': at(
        doneActor(
          'callShields',
          open.map(({ id }) => ({ ...screening('redact', '{"n":0}'), callId: id })),
        ),
      ),
    }),
    ...(unscreened.length > 0 && {
      'results allowed': at(doneActor('resultShields', results('allow'))),
      'results withheld': at(doneActor('resultShields', results('block'))),
    }),
  }
}

function callsAllowed(context: AgentContext): Events {
  const allowed = uncheckedCalls(context).map((call) => ({
    ...screening('allow', call.arguments),
    callId: call.id,
  }))
  return { 'calls allowed': at(doneActor('callShields', allowed)) }
}

function screening(action: ShieldAction, content: string): Screening {
  const message = action === 'block' ? content : null
  return { action, message, content, findings: [{ shield: 'own', action, message, durationMs: 1 }] }
}

function ofPeople(context: AgentContext): Events {
  const openThatNeeds = (needs: string): string =>
    answerableCalls(context).find((call) => call.needs === needs)?.callId ?? 'nobody'
  const callId = openThatNeeds('approval')
  const clientCallId = openThatNeeds('client')
  if (context.state === 'WAITING_FOR_TOOL') return ofTheHasty(callId, clientCallId, context.features)
  // As the journal marks it.
  const unheard = context.features.resultShields && { withheld: true as const }
  return {
    approve: at({ type: 'APPROVE', callId }),
    'approve an edit': at({
      type: 'APPROVE',
      callId,
      arguments: '{"n":2}',
      // As the journal marks it.
      ...(context.features.callShields && { withheld: true }),
    }),
    'approve what the client runs': at({ type: 'APPROVE', callId: clientCallId }),
    reject: at({ type: 'REJECT', callId, why: 'No.', ...unheard }),
    'reject what the client runs': at({ type: 'REJECT', callId: clientCallId, why: 'No.' }),
    'hand in output': at({ type: 'TOOL_OUTPUT', callId: clientCallId, content: 'Picked.' }),
    'hand in for an approval': at({ type: 'TOOL_OUTPUT', callId, content: 'Picked.' }),
    reply: at({ type: 'REPLY', messages: [{ content: 'And now?' }] }),
  }
}

/** Answers that come while other calls are carried out. Where nobody is asked, they are nobody's. */
function ofTheHasty(
  callId: string,
  clientCallId: string,
  { callShields, resultShields }: AgentContext['features'],
): Events {
  return {
    'approve meanwhile': at({ type: 'APPROVE', callId }),
    'reject meanwhile': at({ type: 'REJECT', callId, why: 'No.', ...(resultShields && { withheld: true }) }),
    'hand in output meanwhile': at({ type: 'TOOL_OUTPUT', callId: clientCallId, content: 'Picked.' }),
    ...(callShields && {
      'approve an edit meanwhile': at({ type: 'APPROVE', callId, arguments: '{"n":2}', withheld: true }),
    }),
  }
}

/** Where calls wait for somebody, or may by and by. */
function mayAnswer(value: unknown): boolean {
  const { WAITING_FOR_INPUT: rest, WAITING_FOR_TOOL: work } = value as Record<string, string | undefined>
  return rest !== undefined || (work !== undefined && work.startsWith('screening')) || isExecuting(value)
}

function isAsked(value: unknown): boolean {
  const state = (value as { RUNNING?: { asking?: string } }).RUNNING?.asking
  return state === 'requesting' || state === 'concluding'
}

function isExecuting(value: unknown): boolean {
  return (value as { WAITING_FOR_TOOL?: string }).WAITING_FOR_TOOL === 'executing'
}

function at(event: AnyEventObject, now = early): AnyEventObject {
  return { ...event, now }
}

function unheard(error: ModelActorError): ModelActorError {
  return { ...error, partialText: '' }
}
