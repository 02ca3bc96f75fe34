import type { PolicyVerdict } from '../../../machines/agent/approvals.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import type { ModelActorError } from '../../../machines/agent/model-response.js'
import type { Refusal } from '../../../machines/agent/refusals.js'
import { toRefusal } from '../../core/models/leave-out.js'
import {
  done,
  failed,
  createAnswerEvents,
  type Events,
  late,
  nextWindow,
  createBudgetFailure,
  createFailure,
  createUsage,
  modelFailures,
  modelOutcomes,
  objectOutcomes,
  early,
  laterWakeTime,
  wakeTime,
  laterDecisions,
  toolOutcomes,
} from './actor-outcomes.js'
import { listAnswerableCalls } from '../../../machines/agent/questions.js'
import type { ToolResult } from '../../../machines/agent/batch-calls.js'
import type { AgentConfig } from '../../../machines/agent/config.js'
import { isUnderWay } from '../../../machines/agent/call-state.js'
import type { Elicitation, PendingCall } from '../../../machines/agent/run-result.js'
import type { Screening, ShieldAction } from '../../../machines/agent/screening.js'
import { listUnclearedCalls, listUnclearedInput } from '../../../machines/agent/mask-uncleared.js'

export const waitForBudget: Events = {
  'model: waiting for a shared budget': failed(
    'model',
    createBudgetFailure(undefined, { wakeAt: nextWindow }),
  ),
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

export const conclusionEvents = createModelEvents('conclusion')
const plainEvents = createEvents(createModelEvents)
/** The events for agents with output shields, which do not keep partial text. */
const screenedEvents = createEvents((actor) => createModelEvents(actor, { partialText: '' }))
const objectEvents = createEvents((actor) => createAnswerEvents(actor, objectOutcomes))
const lateEvents = createEvents((actor) => ({
  [`${actor}: text after the deadline`]: done(actor, modelOutcomes.text, late),
}))

/** With `budget.preflight`, requests are always refused. Without it, they are never refused. */
export function listModelEvents({ config: { budget }, features }: AgentContext, hurried: boolean): Events {
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

export function listAnswerEvents(context: AgentContext): Events {
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

export function listVotes(context: AgentContext): Events {
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
export function listExpiryEvents(context: AgentContext): Events {
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
export function listGrantEvents({ calls, grants = [] }: AgentContext): Events {
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
export function listExpiringQuestions({ calls }: AgentContext): Events {
  const callId = findRunning(calls, 'research')
  if (callId === undefined) return {}
  const first = { ...createQuestion('q', 'approval'), expiresAt: early + 1_000 }
  const questions = [first, createQuestion('r', 'approval')]
  return { 'sub-agent: asks with a time limit': restChild(callId, questions) }
}

/** Answers to a tool's open question, or to an earlier one. */
export function listElicitationAnswers(context: AgentContext): Events {
  const content = '{"action":"accept","content":{"seat":"12A"}}'
  const callId = findAsked(context, 'elicitation')?.callId ?? 'a/ask'
  const answer = { type: 'TOOL_OUTPUT', content, callId }
  return {
    'answer a tool question': answer,
    'answer an earlier tool question': { ...answer, fingerprint: 'old' },
  }
}

/** A process stops before it starts the last call. */
export function listLeftEvents({ calls }: AgentContext): Events {
  const callId = calls.findLast(isUnderWay)?.id
  return callId === undefined ? {} : { 'released before a call': { type: 'RELEASED', notStarted: [callId] } }
}

const findRunning = (calls: AgentContext['calls'], name: string): string | undefined =>
  calls.find((call) => call.name === name && isUnderWay(call))?.id

const report = (callId: string, result: ToolResult) => ({ type: 'TOOL_RESULT', callId, result })

const restChild = (callId: string, questions: PendingCall[]) => ({ type: 'CHILD_WAITING', callId, questions })

const notLoaded = { status: 'not_loaded', content: 'Its schema.', durationMs: 0 } as const

type ToolOutcome = keyof typeof toolOutcomes
export const allOutcomes = Object.keys(toolOutcomes) as ToolOutcome[]

export function chooseOutcomes({ guardrails }: AgentConfig): ToolOutcome[] {
  if (guardrails.terminalDelegation) return ['ok', 'sub-agent out of quota']
  return ['ok', 'changed', 'error']
}

export function listToolEvents({ calls, deadline }: AgentContext, outcomes: readonly ToolOutcome[]): Events {
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
export function listLoadEvents({ calls }: AgentContext): Events {
  const callId = calls.find(isUnderWay)?.id
  const load = { type: 'TOOLS_LOADED', callId: 'nobody', names: ['read', 'read'] }
  return {
    ...(callId !== undefined && { 'tool: loads a tool': { ...load, callId } }),
    'tool: loads a tool for an unknown call': load,
  }
}

export function listSkillEvents({ calls, skills }: AgentContext): Events {
  const callId = findRunning(calls, 'load_skill') ?? 'nobody'
  const change =
    skills.length > 0
      ? { action: 'unload', name: 'reading' }
      : { action: 'load', name: 'reading', hash: '0123456789abcdef', allowedTools: ['look'] }
  return { 'skill: changed': { type: 'SKILL_CHANGED', callId, change } }
}

/** Stores a handle: once, twice, and after the call has ended. */
export function listHandleEvents({ calls, tools }: AgentContext): Events {
  const callId = calls.find((call) => tools[call.name]?.keepsHandle && isUnderWay(call))?.id ?? 'nobody'
  return { 'tool: saves a handle': { type: 'HANDLE_SAVED', callId, handle: 'job' } }
}

export function listHandoffEvents({ calls, tools: own }: AgentContext): Events {
  const callId = calls.find((call) => own[call.name]?.handoff && isUnderWay(call))?.id ?? 'nobody'
  const tools = { look: { readOnly: true, idempotent: true, polling: false } }
  return { 'handoff: handed off': { type: 'HANDED_OFF', callId, to: 'billing', tools } }
}

export function listSleepEvents({ calls }: AgentContext): Events {
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

export function listAskEvents({ calls }: AgentContext): Events {
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
export function listChildEnd({ calls }: AgentContext): Events {
  const callId = calls.find(isUnderWay)?.id
  if (callId === undefined) return {}
  const failure = report(callId, toolOutcomes['sub-agent out of quota'])
  return { 'tool: sub-agent out of quota and over budget': { ...failure, usage: createUsage(1_000) } }
}

export function listChildEvents({ calls }: AgentContext): Events {
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

export function listShieldEvents(context: AgentContext): Events {
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
export function listDecisionEvents(context: AgentContext): Events {
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

export function createCallsAllowed(context: AgentContext): Events {
  return { 'calls allowed': done('callShields', screenCalls(listUnclearedCalls(context), 'allow')) }
}

const redacted = '{"n":0}'

/** The screenings of calls, by default with the arguments of each. */
const screenCalls = (calls: AgentContext['calls'], action: ShieldAction, content?: string) =>
  calls.map((call) => ({ ...createScreening(action, content ?? call.arguments), callId: call.id }))

export function createScreening(action: ShieldAction, content: string): Screening {
  const message = action === 'block' ? content : null
  return { action, message, content, findings: [{ shield: 'own', action, message, durationMs: 1 }] }
}
