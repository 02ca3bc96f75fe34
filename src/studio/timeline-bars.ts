import { listAnswerableCalls } from '../../machines/agent/questions.js'
import { isActiveState } from '../../machines/agent/run-result.js'
import type { AgentContext } from '../../machines/agent/context.js'
import type { BatchCall } from '../../machines/agent/batch-calls.js'
import { formatWakeTime } from '../core/base/clock.js'
import { shorten } from '../core/format/format-words.js'
import { getChildSessionId } from '../core/sessions/agent-definition.js'
import { listActivePaths, type SessionStep } from './session-step.js'
import { formatBudgetRefusal } from './record-rows.js'
import { findWakeTime } from './verdict.js'
import type { Bar } from './protocol.js'

type Activity = Pick<Bar, 'lane' | 'label'> & { sessionId?: string }

const activityByState: Record<string, Activity> = {
  'RUNNING.preparing.screeningInput': { lane: 'shields', label: 'input' },
  'RUNNING.preparing.retrieving': { lane: 'memory', label: 'search' },
  'RUNNING.preparing.fittingContext': { lane: 'memory', label: 'context window' },
  'RUNNING.asking.requesting': { lane: 'model', label: 'request' },
  'RUNNING.asking.concluding': { lane: 'model', label: 'last request' },
  'RUNNING.asking.backingOff': { lane: 'waits', label: 'retry' },
  'RUNNING.asking.screeningOutput': { lane: 'shields', label: 'answer' },
  'RUNNING.judging.consultingOnCalls': { lane: 'shields', label: 'custom guards' },
  'WAITING_FOR_TOOL.screeningCalls': { lane: 'shields', label: 'arguments' },
  'WAITING_FOR_TOOL.screeningResults': { lane: 'shields', label: 'results' },
  'WAITING_FOR_TOOL.consultingOnResults': { lane: 'shields', label: 'custom guards' },
  'WAITING_FOR_INPUT.approval': { lane: 'waits', label: 'approval' },
  'WAITING_FOR_INPUT.toolOutput': { lane: 'waits', label: 'client' },
  'WAITING_FOR_INPUT.message': { lane: 'waits', label: 'message' },
  PAUSED: { lane: 'waits', label: 'paused' },
}

export class TimelineBars {
  readonly all: Bar[] = []
  readonly gaps: { from: number; to: number }[] = []
  readonly #open = new Map<string, Bar>()
  #last = 0

  addStep(step: SessionStep): void {
    const { record, entry, before, after } = step
    const event = entry.type === 'event' ? entry.event : null
    const then = before.session.run
    const isBack = event?.type === 'RESUMED'
    if (isBack && then !== null && isActiveState(then.context.state))
      this.gaps.push({ from: this.#last, to: record.at })
    this.#last = record.at
    const activities = listActivities(after.session.run?.context ?? null, listActivePaths(after.session.run))
    const isNewRequest = /^xstate\.(done|error)\.actor\.(model|conclusion)$/.test(event?.type ?? '')
    for (const [key, bar] of this.#open) {
      const isContinued = activities.has(key) && !isBack && !(isNewRequest && bar.lane === 'model')
      if (!isContinued) this.#closeBar(key, bar, step)
    }
    for (const [key, { lane, label, sessionId }] of activities) {
      if (this.#open.has(key)) continue
      const status = lane === 'waits' ? 'waiting' : 'running'
      const bar: Bar = {
        id: this.all.length + 1,
        lane,
        label,
        from: record.at,
        to: null,
        fromSeq: record.seq,
        toSeq: null,
        status,
        ...(sessionId !== undefined && { sessionId }),
      }
      this.all.push(bar)
      this.#open.set(key, bar)
    }
  }

  #closeBar(key: string, bar: Bar, { record, entry, after }: SessionStep): void {
    this.#open.delete(key)
    bar.to = record.at
    bar.toSeq = record.seq
    const event = entry.type === 'event' ? entry.event : null
    if (event?.type === 'TOOL_RESULT' && key.startsWith(`call ${event.callId} `)) {
      const { status, durationMs } = event.result
      bar.status = status === 'ok' ? 'ok' : 'failed'
      // The call may have waited before it ran.
      if (durationMs > 0) bar.from = Math.max(bar.from, record.at - durationMs)
    } else if (event && formatBudgetRefusal(event) !== null) {
      // The request was not sent.
      Object.assign(bar, { lane: 'waits', label: 'budget', status: 'waiting' })
    } else if (bar.lane !== 'waits') bar.status = getEndStatus(event, after.session.run?.context ?? null)
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
