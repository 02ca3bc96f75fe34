import { findBudgetWait, findLaterResume } from '../../machines/agent/actions/sleep.js'
import type { BatchCall } from '../../machines/agent/batch-calls.js'
import type { AgentContext, AgentMachineEvent } from '../../machines/agent/context.js'
import type { AssistantMessage } from '../../machines/agent/messages.js'
import { listAnswerableCalls } from '../../machines/agent/questions.js'
import { isActiveState, isRestState } from '../../machines/agent/run-result.js'
import { formatWakeTime } from '../core/base/clock.js'
import { describeEventType } from '../core/chart/state-labels.js'
import { formatCount, formatMessageText, shorten } from '../core/format/format-words.js'
import { getChildSessionId } from '../core/sessions/agent-definition.js'
import {
  endsRequest,
  findResponse,
  findUsage,
  findWakeTime,
  getOwnUsage,
  isCopiedState,
  listActivePaths,
  type SessionStep,
} from './session-step.js'
import { toShownText } from './shown-values.js'

export type RecordRow = ReturnType<typeof createRow>

export interface SettledCall {
  id: string
  name: string
  /** `ok`, `error`, `blocked`, `not_executed`, … */
  status: string
  isReadOnly: boolean
}

export interface Bar {
  /** The id of the bar, which is unique in the session. A bar with the same id replaces the earlier bar. */
  id: number
  lane: 'model' | 'tools' | 'shields' | 'memory' | 'waits' | 'children'
  label: string
  from: number
  /** The end of the bar. Null while the work is active. */
  to: number | null
  fromSeq: number
  toSeq: number | null
  status: 'ok' | 'failed' | 'running' | 'waiting' | 'interrupted'
  sessionId?: string
}

export function createRow(step: SessionStep) {
  const { record, entry, event, before, after, transitionIds, now: context } = step
  const usage = getOwnUsage(after)
  const to = listActivePaths(after.session.run)
  const wakeAt = context && findWakeTime(context)
  const calls = listSettledCalls(step)
  const spent = findSpending(step)
  const paidUsage = findUsage(event)
  const isAsking = to.some((path) => /^RUNNING\.(preparing|asking)/.test(path))
  return {
    seq: record.seq,
    at: record.at,
    type: entry.type,
    /** A short description, such as `answer: 2 calls` or `read_file ok`. */
    label: formatLabel(step),
    /** Paths of the innermost active states, such as `RUNNING.asking.requesting`. */
    from: listActivePaths(before.session.run),
    to,
    transitionIds,
    state: context === null ? '' : (context.state ?? 'RUNNING'),
    /** When a sleeping run wakes up, in milliseconds since the epoch. */
    ...(wakeAt !== null && { wakeAt }),
    /** Number of the step, from 1. 0 is before the first step. */
    step: context === null ? 0 : context.steps + (isAsking ? 1 : 0),
    run: after.session.runs,
    /** Totals up to this record, without inherited usage. */
    tokens: usage.totalTokens,
    cost: usage.cost,
    /** The cost of this record alone, in USD. Null if its usage has no price. */
    paid: paidUsage === null ? 0 : paidUsage.cost,
    ...(spent && { spent }),
    flags: listFlags(step, calls),
    /** Work started by the record, such as requests, batches, shields and sub-agents. */
    started: listStarted(step),
    calls,
  }
}

/** The model as the provider names it, or the tool. The name is empty if the provider named none. */
function findSpending({ event, was }: SessionStep) {
  const tokens = findUsage(event)?.totalTokens ?? 0
  if (!event || tokens === 0) return null
  if (event.type === 'TOOL_RESULT' || event.type === 'CHILD_USAGE') {
    const name = getCallName(event.callId, was)
    const isChild = Object.hasOwn(was?.tools ?? {}, name) && was?.tools[name]?.delegate === true
    return { by: isChild ? ('sub-agent' as const) : ('tool' as const), name, tokens }
  }
  return { by: 'model' as const, name: toShownText(findResponse(event)?.model ?? '', 200), tokens }
}

function formatLabel({ record, entry, before, after, was }: SessionStep): string {
  switch (entry.type) {
    case 'opened': {
      const { forkedFrom, state } = entry
      if (forkedFrom) return `forked from ${forkedFrom.sessionId} at ${forkedFrom.seq}`
      return state ? `opened with ${formatCount(state.messages.length, 'message')}` : 'opened'
    }
    case 'start': {
      const { features, input } = entry.input
      const { runs, branches } = after.session
      const words = features.inputShields ? '' : input.map((message) => formatMessageText(message)).join(' ')
      const branch = entry.branch && branches ? `, branch ${branches.current}` : ''
      return toShownText(shorten(`run ${runs}${branch}: ${words}`.replace(/: $/, ''), 90))
    }
    case 'snapshot':
      if (entry.selected !== undefined) return `back on branch ${entry.selected}`
      return isCopiedState(before.inherited, record.seq) ? 'state of the original' : 'snapshot'
    default:
      return formatEventLabel(entry.event, was)
  }
}

function formatEventLabel(event: AgentMachineEvent, context: AgentContext | null): string {
  switch (event.type) {
    case 'xstate.done.actor.model':
    case 'xstate.done.actor.conclusion': {
      const { toolCalls, refusal, text } = event.output.response
      const count = toolCalls.length
      if (count > 0) return `answer: ${formatCount(count, 'call')}`
      if (refusal !== null) return 'answer: refusal'
      return text === '' ? 'answer: empty' : 'answer'
    }
    case 'xstate.done.actor.plan': {
      const { model, tools } = event.output
      const parts = [
        model === undefined ? '' : `: ${model}`,
        tools ? `, ${formatCount(tools.length, 'tool')}` : '',
      ]
      return `step prepared${parts.join('')}`
    }
    case 'xstate.error.actor.model':
    case 'xstate.error.actor.conclusion':
      return formatBudgetRefusal(event) ?? `model failed: ${event.error.code.replaceAll('_', ' ')}`
    case 'TOOL_RESULT':
      return `${getCallName(event.callId, context)} ${event.result.status}`
    case 'TOOLS_LOADED':
      return `${event.names.length === 1 ? 'tool' : 'tools'} loaded: ${shorten(event.names.join(', '), 60)}`
    case 'CHILD_USAGE':
      return `${getCallName(event.callId, context)} has used ${event.usage.totalTokens} tokens`
    case 'CHILD_WAITING':
      return `${getCallName(event.callId, context)} waits`
    case 'SKILL_CHANGED':
      return `skill ${shorten(event.change.name, 60)} ${event.change.action}ed`
    case 'RESUME':
      return findLaterResume(event) === null ? 'resumed' : `sleeps until ${formatWakeTime(event.at ?? 0)}`
    case 'HANDLE_SAVED':
      return `${getCallName(event.callId, context)} stored a handle`
    case 'HANDED_OFF':
      return `handed to ${shorten(event.to, 60)}`
    case 'APPROVE':
      return `approved ${getCallName(event.callId, context)}${event.arguments === undefined ? '' : ', edited'}${event.grant ? ', with a grant' : ''}`
    case 'REJECT':
      return `rejected ${getCallName(event.callId, context)}`
    case 'GRANT':
      return `grant for ${shorten(event.tool, 60)}`
    case 'REVOKE':
      return 'grant' in event ? 'grant revoked' : `approval of ${getCallName(event.callId, context)} revoked`
    case 'GRANT_ENDED':
      return `${getCallName(event.callId, context)} waits: its grant has ended`
    case 'TOOL_OUTPUT':
      return `output of ${getCallName(event.callId, context)}`
    default:
      return (
        formatBudgetRefusal(event) ??
        eventWords[event.type] ??
        describeEventType(event.type).replace('backOff done', 'wait over')
      )
  }
}

type FailureEvent = Extract<AgentMachineEvent, { type: `xstate.error.actor.${'model' | 'conclusion'}` }>

/** A memory search fails like a request, but the machine's event type does not include this failure. */
const isFailure = (event: AgentMachineEvent): event is FailureEvent =>
  /^xstate\.error\.actor\.(model|conclusion|retrieval)$/.test(event.type)

/** Null unless a shared budget refused the request, which was then not sent. */
function formatBudgetRefusal(event: AgentMachineEvent): string | null {
  if (!isFailure(event)) return null
  const { code, budget } = event.error
  if (code !== 'shared_budget' || budget === undefined) return null
  const name = shorten(budget, 60)
  return findBudgetWait(event) === null
    ? `the shared budget ${name} is used up`
    : `waiting for the shared budget ${name}`
}

const eventWords: Partial<Record<AgentMachineEvent['type'], string>> = {
  RESUMED: 'resumed in a new process',
  RELEASED: 'handed over to another process',
  PAUSE: 'pause requested',
  STEER: 'steered',
  REPLY: 'replied',
  CANCEL: 'cancelled',
  DEADLINE: 'deadline reached',
  APPROVAL_EXPIRED: 'question expired',
  STORE_FAILED: 'the store failed',
  BATCH_DONE: 'batch done',
}

type Flag =
  | 'retry'
  | 'nudge'
  | 'block'
  | 'halt'
  | 'budget'
  | 'resume'
  | 'fork'
  | 'error'
  | 'truncated'
  | 'wait'

function listFlags(
  { entry, event, was, now, transitionIds }: SessionStep,
  calls: readonly SettledCall[],
): Flag[] {
  const flags = new Set<Flag>()
  if (entry.type === 'opened' && entry.forkedFrom) flags.add('fork')
  if (now === null || entry.type === 'opened' || entry.type === 'snapshot') return [...flags]
  const leads = (to: string): boolean => transitionIds.some((id) => id.endsWith(`→ ${to}`))
  if (leads('RUNNING.asking.backingOff') || transitionIds.some((id) => id.includes('[pausesRetry]')))
    flags.add('retry')
  if (now.nudges.length > 0 && now.nudges !== was?.nudges) flags.add('nudge')
  if (calls.some(({ status }) => status === 'blocked')) flags.add('block')
  if (leads('RUNNING.judging.halting')) flags.add('halt')
  const isSpent = now.state === 'BUDGET_EXCEEDED' && was?.state !== 'BUDGET_EXCEEDED'
  const isRefused = event !== null && formatBudgetRefusal(event) !== null
  if (isSpent || isRefused || (now.warnedOfBudget && was?.warnedOfBudget === false)) flags.add('budget')
  if (event?.type === 'RESUMED' || event?.type === 'RESUME') flags.add('resume')
  const isError = now.state === 'ERROR' && was?.state !== 'ERROR'
  // A failed attempt that is retried does not count as a failure.
  const hasFailed = !isRefused && !flags.has('retry') && event?.type.startsWith('xstate.error.') === true
  if (isError || hasFailed) flags.add('error')
  const isCut = now.response === 'truncated' || now.response === 'truncatedCalls'
  if (isCut && event?.type.startsWith('xstate.done.actor.') === true) flags.add('truncated')
  const isForPerson = isRestState(now.state) && findWakeTime(now) === null
  if (isForPerson && !isRestState(was?.state)) flags.add('wait')
  return [...flags]
}

type Activity = Pick<Bar, 'lane' | 'label'> & { sessionId?: string }

/** What a run does in a state: its bar, and the words for the start of the work. */
const activityByState: Record<string, Activity & { work?: string }> = {
  'RUNNING.preparing.screeningInput': { lane: 'shields', label: 'input', work: 'shields: input' },
  'RUNNING.preparing.retrieving': { lane: 'memory', label: 'search', work: 'memory' },
  'RUNNING.preparing.fittingContext': { lane: 'memory', label: 'context window', work: 'context window' },
  'RUNNING.asking.requesting': { lane: 'model', label: 'request', work: 'request' },
  'RUNNING.asking.concluding': { lane: 'model', label: 'last request', work: 'last request' },
  'RUNNING.asking.backingOff': { lane: 'waits', label: 'retry', work: 'wait before the next attempt' },
  'RUNNING.asking.screeningOutput': { lane: 'shields', label: 'answer', work: 'shields: answer' },
  'RUNNING.judging.consultingOnCalls': { lane: 'shields', label: 'custom guards', work: 'custom guards' },
  'WAITING_FOR_TOOL.screeningCalls': { lane: 'shields', label: 'arguments', work: 'shields: arguments' },
  'WAITING_FOR_TOOL.screeningResults': { lane: 'shields', label: 'results', work: 'shields: results' },
  'WAITING_FOR_TOOL.consultingOnResults': { lane: 'shields', label: 'custom guards', work: 'custom guards' },
  'WAITING_FOR_INPUT.approval': { lane: 'waits', label: 'approval' },
  'WAITING_FOR_INPUT.toolOutput': { lane: 'waits', label: 'client' },
  'WAITING_FOR_INPUT.message': { lane: 'waits', label: 'message' },
  PAUSED: { lane: 'waits', label: 'paused' },
}

export const startedWorks: ReadonlySet<string> = new Set(
  Object.values(activityByState).flatMap(({ work }) => work ?? []),
)

function listStarted({ entry, event, was, now, after, transitionIds }: SessionStep): string[] {
  if (now === null || entry.type === 'snapshot' || entry.type === 'opened') return []
  const entered = listActivePaths(after.session.run).filter(
    (path) => event?.type === 'RESUMED' || transitionIds.some((id) => id.endsWith(`→ ${path}`)),
  )
  const running = was?.calls ?? []
  const calls = now.calls.filter(
    (call) => call.started && !call.result && !running.some(({ id, started }) => id === call.id && started),
  )
  return [
    ...entered.flatMap((path) => activityByState[path]?.work ?? []),
    ...calls.map(({ name }) => shorten(name, 60)),
  ]
}

function listSettledCalls({ event, was, now }: SessionStep): SettledCall[] {
  if (now === null || event === null) return []
  const known = new Set(was?.calls.flatMap(({ id, result }) => (result ? [id] : [])))
  const settled = new Map<string, SettledCall>()
  const add = (id: string, name: string, status: string, tool = name): void => {
    if (!known.has(id)) settled.set(id, { id, name, status, isReadOnly: isReadOnly(now, tool) })
  }
  for (const { id, name, result } of now.calls) if (result) add(id, getCallName(id, now), result.status, name)
  for (const message of now.messages.slice(was?.messages.length ?? 0)) {
    if (message.role !== 'tool') continue
    const { tool_call_id: id, data } = message
    add(id, getCallName(id, was, now), typeof data?.['status'] === 'string' ? data['status'] : 'ok')
  }
  return [...settled.values()]
}

function isReadOnly({ tools }: AgentContext, name: string): boolean {
  return Object.hasOwn(tools, name) && tools[name]?.readOnly === true
}

/** An unknown tool name is unscreened text from the model, so it is not shown. */
export function getCallName(callId: string, ...contexts: (AgentContext | null)[]): string {
  for (const context of contexts) {
    const call = context?.calls.find(({ id }) => id === callId || callId.startsWith(`${id}/`))
    if (!call) continue
    const isKnown = !call.unscreenedArguments || Object.hasOwn(context?.tools ?? {}, call.name)
    return isKnown ? shorten(call.name, 60) : 'call'
  }
  return findNameInTranscript(callId, contexts.at(-1) ?? null) ?? 'call'
}

/** A batch that was refused as a whole was never the current batch. */
function findNameInTranscript(callId: string, context: AgentContext | null): string | undefined {
  const asking = context?.messages.findLast(
    (message): message is AssistantMessage =>
      message.role === 'assistant' && message.tool_calls?.some(({ id }) => id === callId) === true,
  )
  const name = asking?.tool_calls?.find(({ id }) => id === callId)?.function.name
  return context && name !== undefined ? toLabel(name, context) : undefined
}

export class TimelineBars {
  readonly bars: Bar[] = []
  readonly gaps: { from: number; to: number }[] = []
  readonly #open = new Map<string, Bar>()
  #last = 0

  addStep(step: SessionStep): void {
    const { record, event, after, was, now } = step
    const isBack = event?.type === 'RESUMED'
    if (isBack && was !== null && isActiveState(was.state))
      this.gaps.push({ from: this.#last, to: record.at })
    this.#last = record.at
    const activities = listActivities(now, listActivePaths(after.session.run))
    const isNewRequest = endsRequest(event)
    for (const [key, bar] of this.#open) {
      const isContinued = activities.has(key) && !isBack && !(isNewRequest && bar.lane === 'model')
      if (!isContinued) this.#closeBar(key, bar, step)
    }
    for (const [key, { lane, label, sessionId }] of activities) {
      if (this.#open.has(key)) continue
      const status = lane === 'waits' ? 'waiting' : 'running'
      const bar: Bar = {
        id: this.bars.length + 1,
        lane,
        label,
        from: record.at,
        to: null,
        fromSeq: record.seq,
        toSeq: null,
        status,
        ...(sessionId !== undefined && { sessionId }),
      }
      this.bars.push(bar)
      this.#open.set(key, bar)
    }
  }

  #closeBar(key: string, bar: Bar, { record, event, now }: SessionStep): void {
    this.#open.delete(key)
    bar.to = record.at
    bar.toSeq = record.seq
    if (event?.type === 'TOOL_RESULT' && key.startsWith(`call ${event.callId} `)) {
      const { status, durationMs } = event.result
      bar.status = status === 'ok' ? 'ok' : 'failed'
      // The call may have waited before it ran.
      if (durationMs > 0) bar.from = Math.max(bar.from, record.at - durationMs)
    } else if (event && formatBudgetRefusal(event) !== null) {
      // The request was not sent.
      Object.assign(bar, { lane: 'waits', label: 'budget', status: 'waiting' })
    } else if (bar.lane !== 'waits') bar.status = getEndStatus(event, now)
  }
}

function getEndStatus(event: { type: string } | null, context: AgentContext | null): Bar['status'] {
  const type = event?.type ?? ''
  if (type.startsWith('xstate.error.')) return 'failed'
  const isCut = ['RESUMED', 'CANCEL', 'DEADLINE', 'STORE_FAILED', ''].includes(type)
  return isCut || context === null ? 'interrupted' : 'ok'
}

function listActivities(context: AgentContext | null, paths: readonly string[]): Map<string, Activity> {
  const all = new Map<string, Activity>()
  if (context === null) return all
  for (const path of paths) {
    const asks =
      path === 'WAITING_FOR_INPUT.toolOutput' &&
      context.calls.some(({ questions, result }) => questions && !result)
    const doing =
      (path === 'PAUSED' && findSleep(context)) ||
      (path === 'WAITING_FOR_INPUT.approval' && findApproval(context)) ||
      (asks ? answering : activityByState[path])
    // The label is part of the key, so that a wait for another date or other calls gets a separate bar.
    if (doing) all.set(`${path} ${doing.label}`, doing)
  }
  for (const call of context.calls) {
    if (call.result || !(call.started || call.questions)) continue
    all.set(`call ${call.id} ${context.batchNumber}`, toActivity(call, context))
  }
  return all
}

/** A tool's server or a sub-agent asks a person. */
const answering: Activity = { lane: 'waits', label: 'an answer' }

function findApproval(context: AgentContext): Activity | undefined {
  const names = listAnswerableCalls(context).flatMap(({ needs, name }) =>
    needs === 'approval' ? toLabel(name, context) : [],
  )
  return names.length === 0
    ? undefined
    : { lane: 'waits', label: `${[...new Set(names)].join(', ')} (approval)` }
}

function findSleep(context: AgentContext): Activity | undefined {
  const wakeAt = findWakeTime(context)
  if (wakeAt === null) return undefined
  const { reason, error } = context
  const budget = reason === 'shared_budget' ? error?.budget : undefined
  const rests = budget === undefined ? 'sleeping' : `budget ${shorten(budget, 60)}`
  return { lane: 'waits', label: `${rests} until ${formatWakeTime(wakeAt)}` }
}

/** An unknown name is unscreened text from the model. */
const toLabel = (name: string, { tools }: AgentContext): string =>
  Object.hasOwn(tools, name) ? shorten(name, 60) : 'call'

function toActivity(call: BatchCall, context: AgentContext): Activity {
  const label = toLabel(call.name, context)
  if (!Object.hasOwn(context.tools, call.name) || !context.tools[call.name]?.delegate)
    return { lane: 'tools', label }
  return { lane: 'children', label, sessionId: getChildSessionId(context, call.id) }
}
