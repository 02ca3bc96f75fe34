import type { AgentContext } from '../../../machines/agent/context.js'
import type { ModelActorError, ModelOutput } from '../../../machines/agent/model-response.js'
import type { Refusal } from '../../../machines/agent/refusals.js'
import { toRefusal } from '../../core/models/leave-out.js'
import {
  done,
  failed,
  featureOutcomes,
  stampEvent,
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
import type { AnyEventObject } from 'xstate'
import type { AgentConfig } from '../../../machines/agent/config.js'
import { isUnderWay } from '../../../machines/agent/call-state.js'
import type { Elicitation, PendingCall } from '../../../machines/agent/run-result.js'
import type { PolicyVerdict } from '../../../machines/agent/approvals.js'
import type { Screening, ShieldAction } from '../../../machines/agent/screening.js'
import { listUnclearedCalls, listUnclearedInput } from '../../../machines/agent/mask-uncleared.js'

/** The model's answers, per featured agent. */
export const featureModels = Object.fromEntries(
  Object.entries(featureOutcomes).map(([name, outcomes]) => [name, createAnswerEvents('model', outcomes)]),
) as Record<keyof typeof featureOutcomes, Events>

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

export const modelActorEvents = {
  model: createModelEvents('model'),
  conclusion: createModelEvents('conclusion'),
}
/** The events for agents with output shields, which do not keep partial text. */
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
    Object.entries(outcomes).map(([name, outcome]) => [`${actor}: ${name}`, done(actor, outcome)]),
  )
}

function createModelEvents(
  actor: 'model' | 'conclusion',
  change: (error: ModelActorError) => ModelActorError = (error) => error,
): { inTime: Events; late: Events } {
  const failures = Object.entries(modelFailures).map(([name, error]) => [
    `${actor}: ${name}`,
    failed(actor, change(error)),
  ])
  return {
    inTime: { ...createAnswerEvents(actor, modelOutcomes), ...(Object.fromEntries(failures) as Events) },
    late: { [`${actor}: text after the deadline`]: done(actor, modelOutcomes.text, late) },
  }
}

/**
 * Lists the outcomes of a request. With `budget.preflight`, requests are always refused. Without it, they are never
 * refused.
 */
export function listModelEvents({ config: { budget }, features }: AgentContext, hurried: boolean): Events {
  if (budget.preflight) return refusedRequest
  if (features.structuredOutput) return objectEvents
  const { model, conclusion } = features.outputShields ? screenedActorEvents : modelActorEvents
  return { ...model.inTime, ...conclusion.inTime, ...(hurried && { ...model.late, ...conclusion.late }) }
}

const refusedRequest: Events = {
  'model: refused by the budget': failed('model', createFailure('fatal', 'token_budget')),
  'model: refused by a shared budget': failed('model', createBudgetFailure()),
  'model: shared budget unavailable': failed('model', createBudgetFailure('shared_budget_unavailable')),
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
  // The log marks content that is pending review.
  const unheard = { ...(hasReasonShields(context.features) && { withheld: true as const }) }
  return {
    approve: stampEvent({ type: 'APPROVE', callId }),
    'approve an edit': stampEvent({
      type: 'APPROVE',
      callId,
      arguments: '{"n":2}',
      ...(context.features.callShields && { withheld: true }),
    }),
    'approve a client call': stampEvent({ type: 'APPROVE', callId: clientCallId }),
    reject: stampEvent({ type: 'REJECT', callId, why: 'No.', ...unheard }),
    'reject a client call': stampEvent({ type: 'REJECT', callId: clientCallId, why: 'No.' }),
    'submit output': stampEvent({ type: 'TOOL_OUTPUT', callId: clientCallId, content: 'Picked.' }),
    'submit output for an approval': stampEvent({ type: 'TOOL_OUTPUT', callId, content: 'Picked.' }),
    reply: stampEvent({ type: 'REPLY', messages: [{ content: 'And now?' }] }),
  }
}

/** Answers from people who may approve, from people who may not, and from the requester. */
export function listVotes(context: AgentContext): Events {
  const callId =
    listAnswerableCalls(context).find((call) => call.needs === 'approval' && call.approvers)?.callId ??
    'nobody'
  if (callId === 'nobody') return {}
  const people = { bob: ['finance'], cyd: ['finance'], ann: ['finance'], eve: ['sales'] }
  const votes = Object.entries(people).map(([id, roles]) => [
    `approve as ${id}`,
    stampEvent({ type: 'APPROVE', callId, by: { id, roles } }),
  ])
  const bob = { by: { id: 'bob', roles: people.bob } }
  return {
    ...Object.fromEntries(votes),
    'approve an edit as bob': stampEvent({
      type: 'APPROVE',
      callId,
      arguments: '{"n":2}',
      ...bob,
      ...(context.features.callShields && { withheld: true }),
    }),
    'reject as eve': stampEvent({ type: 'REJECT', callId, why: 'No.', by: { id: 'eve', roles: people.eve } }),
    'reject as ann': stampEvent({ type: 'REJECT', callId, why: 'No.', by: { id: 'ann', roles: people.ann } }),
  }
}

/** Time passes while questions are open, before or after an answer. */
export function listExpiryEvents(context: AgentContext): Events {
  const open = listAnswerableCalls(context).filter(({ needs }) => needs === 'approval')
  const callId = open.at(-1)?.callId ?? 'nobody'
  return {
    'approve the last question': stampEvent({ type: 'APPROVE', callId }),
    'approve after expiry': stampEvent({ type: 'APPROVE', callId }, late),
    'reject after expiry': stampEvent({ type: 'REJECT', callId, why: 'No.' }, late),
    'question expired': stampEvent({ type: 'APPROVAL_EXPIRED' }, late),
    'question expiry reported early': stampEvent({ type: 'APPROVAL_EXPIRED' }),
  }
}

/** Grants that cover the open calls, once or for a time, and the end of grants and approvals. */
export function listGrantEvents({ calls, grants = [] }: AgentContext): Events {
  const callId =
    calls.find(({ needs, result }) => needs === 'approval' && result === undefined)?.id ?? 'nobody'
  const approved = calls.find((call) => call.approved && !call.started)?.id ?? 'nobody'
  const granted = calls.findLast((call) => call.grant !== undefined && isUnderWay(call))?.id
  const bob = { by: { id: 'bob' } }
  const when = { n: { max: 1 } }
  return {
    approve: stampEvent({ type: 'APPROVE', callId }),
    'approve with a grant': stampEvent({ type: 'APPROVE', callId, grant: { id: 'once', uses: 1 }, ...bob }),
    'approve after the grant has ended': stampEvent({ type: 'APPROVE', callId }, late),
    'give a grant': stampEvent({
      type: 'GRANT',
      tool: 'lend',
      grant: { id: 'short', when, until: early + 1_000 },
      ...bob,
    }),
    'revoke a grant': stampEvent({ type: 'REVOKE', grant: grants[0]?.id ?? 'none' }),
    'revoke an approval': stampEvent({ type: 'REVOKE', callId: approved }),
    'revoke the approval of another': stampEvent({ type: 'REVOKE', callId: approved, by: { id: 'eve' } }),
    ...(granted !== undefined && {
      'the grant of a call has ended': stampEvent({ type: 'GRANT_ENDED', callId: granted }),
    }),
  }
}

/** A sub-agent asks two questions, and one of them expires. */
export function listExpiringQuestions({ calls }: AgentContext): Events {
  const callId = findRunning(calls, 'research')?.id
  if (callId === undefined) return {}
  const questions = [
    { ...createQuestion('q', 'approval'), expiresAt: early + 1_000 },
    createQuestion('r', 'approval'),
  ]
  return { 'sub-agent: asks with a time limit': stampEvent({ type: 'CHILD_WAITING', callId, questions }) }
}

/** Answers to a tool's open question, or to an earlier one. */
export function listElicitationAnswers(context: AgentContext): Events {
  const open = listAnswerableCalls(context).find(({ needs }) => needs === 'elicitation')
  const answer = { type: 'TOOL_OUTPUT', content: '{"action":"accept","content":{"seat":"12A"}}' }
  return {
    'answer a tool question': stampEvent({ ...answer, callId: open?.callId ?? 'a/ask' }),
    'answer an earlier tool question': stampEvent({
      ...answer,
      callId: open?.callId ?? 'a/ask',
      fingerprint: 'old',
    }),
  }
}

/**
 * Whether shields screen reasons. The reason for a rejection is user input and becomes the call's result, so both kinds
 * of shields screen it.
 */
function hasReasonShields({ inputShields, resultShields }: AgentContext['features']): boolean {
  return inputShields || resultShields
}

/** Answers that arrive while other calls run. Without a pending call, they match none. */
function listEarlyAnswers(callId: string, clientCallId: string, features: AgentContext['features']): Events {
  return {
    'approve during other calls': stampEvent({ type: 'APPROVE', callId }),
    'reject during other calls': stampEvent({
      type: 'REJECT',
      callId,
      why: 'No.',
      ...(hasReasonShields(features) && { withheld: true }),
    }),
    'submit output during other calls': stampEvent({
      type: 'TOOL_OUTPUT',
      callId: clientCallId,
      content: 'Picked.',
    }),
    ...(features.callShields && {
      'approve an edit during other calls': stampEvent({
        type: 'APPROVE',
        callId,
        arguments: '{"n":2}',
        withheld: true,
      }),
    }),
  }
}

/** A process stops before it starts the last call. */
export function listLeftEvents({ calls }: AgentContext): Events {
  const callId = calls.findLast(isUnderWay)?.id
  return callId === undefined
    ? {}
    : { 'released before a call': stampEvent({ type: 'RELEASED', notStarted: [callId] }) }
}

const findRunning = (calls: AgentContext['calls'], name: string) =>
  calls.find((call) => call.name === name && isUnderWay(call))

const notLoaded = { status: 'not_loaded', content: 'Its schema.', durationMs: 0 } as const

type ToolOutcome = keyof typeof toolOutcomes
export const allOutcomes = Object.keys(toolOutcomes) as ToolOutcome[]

export function chooseOutcomes({ guardrails }: AgentConfig): ToolOutcome[] {
  if (guardrails.terminalDelegation) return ['ok', 'sub-agent out of quota']
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
    events['tool: ok after the deadline'] = { ...events['tool: ok'], now: late }
  if (open.length === started.length) events['tool runner gave up'] = stampEvent({ type: 'BATCH_DONE' })
  events['tool: result for an unknown call'] = stampEvent({
    type: 'TOOL_RESULT',
    callId: 'nobody',
    result: toolOutcomes.ok,
  })
  return events
}

/** Loads the same deferred tool twice, and once for a call that does not exist. */
export function listLoadEvents({ calls }: AgentContext): Events {
  const callId = calls.find(isUnderWay)?.id
  const load = (id: string): AnyEventObject =>
    stampEvent({ type: 'TOOLS_LOADED', callId: id, names: ['read', 'read'] })
  return {
    ...(callId !== undefined && { 'tool: loads a tool': load(callId) }),
    'tool: loads a tool for an unknown call': load('nobody'),
  }
}

/** Loads a skill that allows only `look`, or unloads it. */
export function listSkillEvents({ calls, skills }: AgentContext): Events {
  const callId = findRunning(calls, 'load_skill')?.id
  const change =
    skills.length > 0
      ? { action: 'unload', name: 'reading' }
      : { action: 'load', name: 'reading', hash: '0123456789abcdef', allowedTools: ['look'] }
  return {
    'skill: changed': stampEvent({ type: 'SKILL_CHANGED', callId: callId ?? 'nobody', change }),
  }
}

/** Stores a handle: once, twice, and after the call has ended. */
export function listHandleEvents({ calls, tools }: AgentContext): Events {
  const callId = calls.find((call) => tools[call.name]?.keepsHandle && isUnderWay(call))?.id
  return {
    'tool: saves a handle': stampEvent({ type: 'HANDLE_SAVED', callId: callId ?? 'nobody', handle: 'job' }),
  }
}

/** Hands off to an agent that may only look. */
export function listHandoffEvents({ calls, tools }: AgentContext): Events {
  const open = calls.find((call) => tools[call.name]?.handoff && isUnderWay(call))
  return {
    'handoff: handed off': stampEvent({
      type: 'HANDED_OFF',
      callId: open?.id ?? 'nobody',
      to: 'billing',
      tools: { look: { readOnly: true, idempotent: true, polling: false } },
    }),
  }
}

/** A tool or sub-agent sleeps until a future or a past time. */
export function listSleepEvents({ calls }: AgentContext): Events {
  const open = calls.find(isUnderWay)
  if (open === undefined) return {}
  const { id: callId, name } = open
  if (name === 'research') {
    const rest = { type: 'CHILD_WAITING', callId, questions: [], wakeAt: laterWakeTime }
    return {
      'sub-agent: sleeps': stampEvent(rest),
      'sub-agent: sleeps until a past time': stampEvent({ ...rest, wakeAt: 1 }),
    }
  }
  const sleep = (wakeAt: number): AnyEventObject =>
    stampEvent({ type: 'TOOL_RESULT', callId, result: { ...toolOutcomes.ok, wakeAt } })
  return { 'tool: sleeps': sleep(wakeTime), 'tool: sleeps until a past time': sleep(1) }
}

/** A tool asks for one or two approvals during its call. */
export function listAskEvents({ calls }: AgentContext): Events {
  const callId = findRunning(calls, 'book')?.id
  if (callId === undefined) return {}
  const asks = (...ids: string[]): AnyEventObject =>
    stampEvent({ type: 'CHILD_WAITING', callId, questions: ids.map(createElicitation), memo: ids.length })
  return { 'tool: needs approval': asks('ask'), 'tool: asks two questions': asks('ask', 'too') }
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

/** A sub-agent fails permanently after spending the budget. */
export function listChildEnd({ calls }: AgentContext): Events {
  const callId = calls.find(isUnderWay)?.id
  if (callId === undefined) return {}
  const result = toolOutcomes['sub-agent out of quota']
  return {
    'tool: sub-agent out of quota and over budget': stampEvent({
      type: 'TOOL_RESULT',
      callId,
      result,
      usage: createUsage(1_000),
    }),
  }
}

export function listChildEvents({ calls }: AgentContext): Events {
  const callId = findRunning(calls, 'research')?.id
  if (callId === undefined) return {}
  const rests = (...questions: PendingCall[]): AnyEventObject =>
    stampEvent({ type: 'CHILD_WAITING', callId, questions })
  const reports = (tokens: number, id = callId): AnyEventObject =>
    stampEvent({ type: 'CHILD_USAGE', callId: id, usage: createUsage(tokens) })
  const answers = (tokens: number): AnyEventObject =>
    stampEvent({ type: 'TOOL_RESULT', callId, result: toolOutcomes.ok, usage: createUsage(tokens) })
  const [approval, output] = [createQuestion('q', 'approval'), createQuestion('r', 'client')]
  return {
    'sub-agent: reports usage': reports(10),
    'sub-agent: reports usage over budget': reports(1_000),
    'sub-agent: answers with usage': answers(10),
    'sub-agent: answers with usage over budget': answers(1_000),
    'sub-agent: needs approval': rests(approval),
    'sub-agent: needs approval and client output': rests(approval, output),
    'sub-agent: needs client output': rests(output),
    'sub-agent: is paused': rests(),
    'sub-agent of an unknown call: reports usage': reports(1_000, 'nobody'),
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
  const screen = (calls: readonly { id: string }[], action: ShieldAction, content: string) =>
    calls.map(({ id }) => ({ ...createScreening(action, content), callId: id }))
  return {
    ...(messages.length > 0 && { 'input allowed': done('inputShields', allowed) }),
    ...createCallsAllowed(context),
    ...(open.length > 0 && {
      'calls refused': done('callShields', screen(open, 'block', 'Not that.')),
      'calls redacted': done('callShields', screen(open, 'redact', '{"n":0}')),
    }),
    ...(unscreened.length > 0 && {
      'results allowed': done('resultShields', screen(unscreened, 'allow', 'What it may say.')),
      'results withheld': done('resultShields', screen(unscreened, 'block', 'What it may say.')),
    }),
  }
}

/** Policies decide on edited and redacted arguments. */
export function listDecisionEvents(context: AgentContext): Events {
  const open = listUnclearedCalls(context)
  if (open.length === 0) return {}
  const decide = (decisions: PolicyVerdict[] | undefined, action: 'allow' | 'redact') =>
    open.map((call) => ({
      ...createScreening(action, action === 'redact' ? '{"n":0}' : call.arguments),
      callId: call.id,
      ...(decisions && { decisions: [...decisions] }),
    }))
  return Object.fromEntries(
    Object.entries(laterDecisions).flatMap(([name, decisions]) =>
      (['allow', 'redact'] as const).map((action) => [
        `calls ${action === 'redact' ? 'redacted' : 'allowed'}, policies: ${name}`,
        done('callShields', decide(decisions, action)),
      ]),
    ),
  )
}

export function createCallsAllowed(context: AgentContext): Events {
  const allowed = listUnclearedCalls(context).map((call) => ({
    ...createScreening('allow', call.arguments),
    callId: call.id,
  }))
  return { 'calls allowed': done('callShields', allowed) }
}

export function createScreening(action: ShieldAction, content: string): Screening {
  const message = action === 'block' ? content : null
  return { action, message, content, findings: [{ shield: 'own', action, message, durationMs: 1 }] }
}
