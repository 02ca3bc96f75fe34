import type { AnyEventObject, SnapshotFrom } from 'xstate'
import { isWatching } from '../../../guards/state.js'
import type { agentMachine } from '../../../machines/agent.machine.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import type { PartialAnswer } from '../../../machines/agent/machine-events.js'
import { expectArgument } from '../../core/base/expect-argument.js'
import { createDoneActorEvent, createErrorActorEvent } from '../space.js'
import { ofPeople } from './answer-events.js'
import { at, type Events, late } from './at.js'
import {
  delegatingModel,
  modelEvents,
  ofModel,
  screenedModel,
  twoCalls,
  watchedModel,
} from './model-events.js'
import { consultation, failure, fitting, usageOf } from './outcomes.js'
import { callsAllowed, ofShields, screening } from './shield-events.js'
import { agentSnapshot } from './state-key.js'
import {
  everyOutcome,
  lastWordOfChild,
  leftBehind,
  ofChildren,
  ofTools,
  watchedOutcomes,
} from './tool-events.js'

/** An actor that must not fail has failed. */
const broken = failure('fatal', 'internal')

/**
 * Every event that the agent machine can meet in a state, under names that people use: `model: text`, `cancel`,
 * `tool: denied`. What cannot happen there is left out, because each event multiplies the states: nothing is late
 * without a deadline, and where guards watch the calls, the model only calls and speaks.
 *
 * @example
 * const { inputs } = agentSpace({ only: ['watching progress'], maxSteps: 1 })
 * const { paths } = generatePaths(agentMachine, { inputs, alphabet: listAgentEvents, serializeState: serializeAgentState, limit: 100_000 })
 */
export function listAgentEvents(snapshot: SnapshotFrom<typeof agentMachine>): Record<string, AnyEventObject> {
  expectArgument('listAgentEvents(snapshot)', snapshot, agentSnapshot)
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
      ...((state === 'PAUSED' || context.pausing) && { resume }),
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
      ...((state === 'PAUSED' || context.pausing) && { resume }),
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
    ...((state === 'PAUSED' || context.pausing) && { resume }),
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

const passed = at({ type: 'DEADLINE' }, late)
const storeFailed = at({
  type: 'STORE_FAILED',
  failure: { code: 'disk_full', message: 'The disk is full.' },
})

const stoppedMidway: Events = {
  'cancel midway': { ...cancel, partial },
  'store failed midway': { ...storeFailed, partial },
}

const actors: Events = {
  'back-off over': at(createDoneActorEvent('backOff')),
  'back-off failed': at(createErrorActorEvent('backOff', broken)),
  'input blocked': at(
    createDoneActorEvent('inputShields', [{ ...screening('block', 'Not that.'), index: 0, part: null }]),
  ),
  'input shield failed': at(createErrorActorEvent('inputShields', broken)),
  retrieved: at(createDoneActorEvent('retrieval', [{ source: 'handbook', text: 'What it says.' }])),
  'retrieval failed': at(createErrorActorEvent('retrieval', broken)),
  'all of it fits': at(createDoneActorEvent('fitting', fitting(null))),
  fitted: at(
    createDoneActorEvent('fitting', fitting({ head: 1, from: 2, note: 'One message was left out.' })),
  ),
  'fitted by a summary over budget': at(
    createDoneActorEvent('fitting', { ...fitting(null), usage: usageOf(1_000) }),
  ),
  'does not fit': at(createErrorActorEvent('fitting', failure('context_overflow', 'context_overflow'))),
  'fitting failed': at(createErrorActorEvent('fitting', broken)),
  'call shield failed': at(createErrorActorEvent('callShields', broken)),
  'output cleared': at(createDoneActorEvent('outputShields', screening('redact', 'Done.'))),
  'output blocked': at(createDoneActorEvent('outputShields', screening('block', 'Not that.'))),
  'output shield failed': at(createErrorActorEvent('outputShields', broken)),
  'result shield failed': at(createErrorActorEvent('resultShields', broken)),
  'own guards let the calls pass': at(createDoneActorEvent('callGuards', consultation())),
  'an own guard refuses the calls': at(createDoneActorEvent('callGuards', consultation('block'))),
  'an own guard halts on the calls': at(createDoneActorEvent('callGuards', consultation('halt'))),
  'own guards failed on the calls': at(createErrorActorEvent('callGuards', broken)),
  'own guards let the results pass': at(createDoneActorEvent('resultGuards', consultation())),
  'an own guard nudges on the results': at(createDoneActorEvent('resultGuards', consultation('nudge'))),
  'an own guard halts on the results': at(
    createDoneActorEvent('resultGuards', consultation('halt', 'pause')),
  ),
  'own guards failed on the results': at(createErrorActorEvent('resultGuards', broken)),
  'tool runner ended': at(createDoneActorEvent('tools')),
  'tool runner failed': at(createErrorActorEvent('tools', broken)),
}

const watchedActors: Events = Object.fromEntries(
  Object.entries(actors).filter(([name]) => /^(output cleared|own guards let the .* pass)$/.test(name)),
)

/** Sub-agents double what can happen: they are on their own. */
function isDelegating({ tools }: AgentContext): boolean {
  return tools['research']?.delegate === true
}

/** Where input is screened, each piece of steering is a state of its own: one is enough. */
function maySteer({ steering, features, messages }: AgentContext): boolean {
  const isScreened = features.inputShields && messages.some(({ data }) => data?.['reason'] === 'steering')
  return steering.length === 0 && !isScreened
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
