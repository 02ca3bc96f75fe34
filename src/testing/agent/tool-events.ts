import type { AnyEventObject } from 'xstate'
import type { AgentConfig } from '../../../machines/agent/config.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import { isUnderWay } from '../../../machines/agent/call-state.js'
import type { Elicitation, PendingCall } from '../../../machines/agent/run-result.js'
import {
  stampEvent,
  type Events,
  late,
  laterWakeTime,
  wakeTime,
  laterDecisions,
  toolOutcomes,
  createUsage,
} from './actor-outcomes.js'
import type { PolicyVerdict } from '../../../machines/agent/approvals.js'
import type { Screening, ShieldAction } from '../../../machines/agent/screening.js'
import { listUnclearedCalls, listUnclearedInput } from '../../../machines/agent/mask-uncleared.js'
import { createDoneActorEvent } from '../explore-options.js'

/** A process stops before it starts the last call. */
export function listLeftEvents({ calls }: AgentContext): Events {
  const callId = calls.findLast(isUnderWay)?.id
  return callId === undefined
    ? {}
    : { 'left before a call': stampEvent({ type: 'RELEASED', notStarted: [callId] }) }
}

const notLoaded = { status: 'not_loaded', content: 'Its schema.', durationMs: 0 } as const

type ToolOutcome = keyof typeof toolOutcomes
export const allOutcomes = Object.keys(toolOutcomes) as ToolOutcome[]

export function chooseOutcomes({ guardrails }: AgentConfig): ToolOutcome[] {
  if (guardrails.terminalDelegation) return ['ok', 'child out of quota']
  return ['ok', 'changed', 'error']
}

/** The runner reports each started call, or gives up before the first. */
export function listToolEvents({ calls, deadline }: AgentContext, outcomes: readonly ToolOutcome[]): Events {
  const started = calls.filter((call) => call.started)
  const open = started.filter((call) => call.result === undefined)
  const events: Events = {}
  for (const name of outcomes) {
    const [call] = open
    if (call)
      events[`tool: ${name}`] = stampEvent({
        type: 'TOOL_RESULT',
        callId: call.id,
        result: call.unloaded ? notLoaded : toolOutcomes[name],
      })
  }
  if (deadline !== null && events['tool: ok'])
    events['tool: ok, too late'] = { ...events['tool: ok'], now: late }
  if (open.length === started.length) events['tool runner gave up'] = stampEvent({ type: 'BATCH_DONE' })
  events['tool: result of nobody’s call'] = stampEvent({
    type: 'TOOL_RESULT',
    callId: 'nobody',
    result: toolOutcomes.ok,
  })
  return events
}

/** Loads the same deferred tool twice, and for a call that does not exist. */
export function listLoadEvents({ calls }: AgentContext): Events {
  const callId = calls.find(isUnderWay)?.id
  const load = (id: string): AnyEventObject =>
    stampEvent({ type: 'TOOLS_LOADED', callId: id, names: ['read', 'read'] })
  return {
    ...(callId !== undefined && { 'tool: loads a tool': load(callId) }),
    'tool: loads a tool for nobody’s call': load('nobody'),
  }
}

/** Loads a skill that allows only `look`, or unloads it. */
export function listSkillEvents({ calls, skills }: AgentContext): Events {
  const callId = calls.find(({ name, started, result }) => name === 'load_skill' && started && !result)?.id
  const change =
    skills.length > 0
      ? { action: 'unload', name: 'reading' }
      : { action: 'load', name: 'reading', hash: '0123456789abcdef', allowedTools: ['look'] }
  return {
    'skill: changed': stampEvent({ type: 'SKILL_CHANGED', callId: callId ?? 'nobody', change }),
  }
}

/** Stores a handle: once, again, and after the call has ended. */
export function listHandleEvents({ calls, tools }: AgentContext): Events {
  const callId = calls.find((call) => tools[call.name]?.keepsHandle && isUnderWay(call))?.id
  return {
    'tool: keeps a handle': stampEvent({ type: 'HANDLE_SAVED', callId: callId ?? 'nobody', handle: 'job' }),
  }
}

/** Hands off to an agent that may only look. */
export function listHandoffEvents({ calls, tools }: AgentContext): Events {
  const open = calls.find(({ name, started, result }) => tools[name]?.handoff && started && !result)
  return {
    'handoff: handed off': stampEvent({
      type: 'HANDED_OFF',
      callId: open?.id ?? 'nobody',
      to: 'billing',
      tools: { look: { readOnly: true, idempotent: true, polling: false } },
    }),
  }
}

/** A tool or sub-agent sleeps, until a future or a past time. */
export function listSleepEvents({ calls }: AgentContext): Events {
  const open = calls.find(({ started, result }) => started && !result)
  if (open === undefined) return {}
  const { id: callId, name } = open
  if (name === 'research') {
    const rest = { type: 'CHILD_WAITING', callId, questions: [], wakeAt: laterWakeTime }
    return {
      'sub-agent: sleeps': stampEvent(rest),
      'sub-agent: slept too long': stampEvent({ ...rest, wakeAt: 1 }),
    }
  }
  const sleep = (wakeAt: number): AnyEventObject =>
    stampEvent({ type: 'TOOL_RESULT', callId, result: { ...toolOutcomes.ok, wakeAt } })
  return { 'tool: sleeps': sleep(wakeTime), 'tool: sleeps until a time that is over': sleep(1) }
}

/** A tool needs approval one or two questions during its call. */
export function listAskEvents({ calls }: AgentContext): Events {
  const callId = calls.find(({ name, started, result }) => name === 'book' && started && !result)?.id
  if (callId === undefined) return {}
  const asks = (...ids: string[]): AnyEventObject =>
    stampEvent({ type: 'CHILD_WAITING', callId, questions: ids.map(createElicitation), memo: ids.length })
  return { 'tool: needs approval': asks('ask'), 'tool: asks two things': asks('ask', 'too') }
}

function createElicitation(callId: string): PendingCall & { fromTool: true } {
  const elicitation: Elicitation = {
    server: 'airline',
    message: 'Which seat?',
    mode: 'form',
    schema: { type: 'object', properties: { seat: { type: 'string' } } },
  }
  return {
    fromTool: true,
    callId,
    name: 'book',
    arguments: '{}',
    needs: 'elicitation',
    fingerprint: callId,
    elicitation,
  }
}

/** A sub-agent fails for good after spending the budget. */
export function listChildEnd({ calls }: AgentContext): Events {
  const callId = calls.find(isUnderWay)?.id
  if (callId === undefined) return {}
  const result = toolOutcomes['child out of quota']
  return {
    'tool: child out of quota, all spent': stampEvent({
      type: 'TOOL_RESULT',
      callId,
      result,
      usage: createUsage(1_000),
    }),
  }
}

export function listChildEvents({ calls }: AgentContext): Events {
  const callId = calls.find(({ name, started, result }) => name === 'research' && started && !result)?.id
  if (callId === undefined) return {}
  const rests = (questions: PendingCall[]): AnyEventObject =>
    stampEvent({ type: 'CHILD_WAITING', callId, questions })
  return {
    'sub-agent: spends': stampEvent({ type: 'CHILD_USAGE', callId, usage: createUsage(10) }),
    'sub-agent: spends it all': stampEvent({ type: 'CHILD_USAGE', callId, usage: createUsage(1_000) }),
    'sub-agent: answers, and has spent': stampEvent({
      type: 'TOOL_RESULT',
      callId,
      result: toolOutcomes.ok,
      usage: createUsage(10),
    }),
    'sub-agent: answers, and has spent it all': stampEvent({
      type: 'TOOL_RESULT',
      callId,
      result: toolOutcomes.ok,
      usage: createUsage(1_000),
    }),
    'sub-agent: needs approval': rests([createQuestion('q', 'approval')]),
    'sub-agent: needs approval and the client': rests([
      createQuestion('q', 'approval'),
      createQuestion('r', 'client'),
    ]),
    'sub-agent: asks the client': rests([createQuestion('r', 'client')]),
    'sub-agent: is paused': rests([]),
    'sub-agent of nobody’s call: spends': stampEvent({
      type: 'CHILD_USAGE',
      callId: 'nobody',
      usage: createUsage(1_000),
    }),
  }
}

function createQuestion(callId: string, needs: 'approval' | 'client'): PendingCall {
  return { callId, name: 'transfer', arguments: '{"n":1}', needs, fingerprint: callId }
}

export function listShieldEvents(context: AgentContext): Events {
  const messages = listUnclearedInput(context)
  const allowed = messages.map(({ content }, index) => ({
    ...createScreening('allow', typeof content === 'string' ? content : ''),
    index,
    part: null,
  }))
  const open = listUnclearedCalls(context)
  const unscreened = context.calls.filter((call) => call.unscreenedResult)
  const results = (action: ShieldAction) =>
    unscreened.map(({ id }) => ({ ...createScreening(action, 'What it may say.'), callId: id }))
  return {
    ...(messages.length > 0 && {
      'input allowed': stampEvent(createDoneActorEvent('inputShields', allowed)),
    }),
    ...createCallsAllowed(context),
    ...(open.length > 0 && {
      'calls refused': stampEvent(
        createDoneActorEvent(
          'callShields',
          open.map(({ id }) => ({ ...createScreening('block', 'Not that.'), callId: id })),
        ),
      ),
      'calls redacted': stampEvent(
        createDoneActorEvent(
          'callShields',
          open.map(({ id }) => ({ ...createScreening('redact', '{"n":0}'), callId: id })),
        ),
      ),
    }),
    ...(unscreened.length > 0 && {
      'results allowed': stampEvent(createDoneActorEvent('resultShields', results('allow'))),
      'results withheld': stampEvent(createDoneActorEvent('resultShields', results('block'))),
    }),
  }
}

/** Policies decide edited and redacted arguments. */
export function listDecisionEvents(context: AgentContext): Events {
  const open = listUnclearedCalls(context)
  if (open.length === 0) return {}
  const decide = (decisions: PolicyVerdict[] | undefined, action: 'allow' | 'redact') =>
    open.map((call) => ({
      ...createScreening(action, action === 'redact' ? '{"n":0}' : call.arguments),
      callId: call.id,
      ...(decisions && { decisions }),
    }))
  return Object.fromEntries(
    Object.entries(laterDecisions).flatMap(([name, decisions]) =>
      (['allow', 'redact'] as const).map((action) => [
        `calls ${action === 'redact' ? 'redacted' : 'allowed'}, policies: ${name}`,
        stampEvent(createDoneActorEvent('callShields', decide(decisions, action))),
      ]),
    ),
  )
}

export function createCallsAllowed(context: AgentContext): Events {
  const allowed = listUnclearedCalls(context).map((call) => ({
    ...createScreening('allow', call.arguments),
    callId: call.id,
  }))
  return { 'calls allowed': stampEvent(createDoneActorEvent('callShields', allowed)) }
}

export function createScreening(action: ShieldAction, content: string): Screening {
  const message = action === 'block' ? content : null
  return { action, message, content, findings: [{ shield: 'own', action, message, durationMs: 1 }] }
}
