import { getOrCreate, isObject } from '../core/base/values.js'
import { listAnswerableCalls } from '../../machines/agent/questions.js'
import type { AgentContext } from '../../machines/agent/context.js'
import { maskContext } from '../../machines/agent/mask-uncleared.js'
import { formatCount } from '../core/format/format-words.js'
import { findTool } from '../core/run/answer-events.js'
import type { RecordContent } from '../core/sessions/log/log-record.js'
import type { ToolSet } from '../core/tools/tool-set.js'
import { getSpeakerTools } from '../core/live/agent-parts.js'
import type { ControlEvent } from '../../machines/agent/machine-events.js'
import { createGrantViews } from './grant-views.js'
import { createGuardViews } from './guard-views.js'
import type { GaugeView, MomentView, PendingView } from './protocol.js'
import { type CallNotes, createTranscript, toShownText, toShownValue, withheldNote } from './shown-values.js'
import { type Moment, type SessionStep, findEffectiveInstructions } from './session-step.js'
import type { Usage } from '../../machines/agent/usage.js'
import { getBudgetTotals, toBudgetLimits } from '../../machines/agent/budget-totals.js'

function createGauges(context: AgentContext, { children, inherited }: Moment, at: number): GaugeView[] {
  const totals = getBudgetTotals(context)
  const copied = inherited[context.config.budget.scope === 'session' ? 'session' : 'run']
  const { tokenBudget, outputTokens, costLimit, countCached } = toBudgetLimits(context.config)
  const counted = (usage: Usage): number =>
    usage.inputTokens + usage.outputTokens - (countCached ? 0 : usage.cachedInputTokens)
  const { maxSteps, timeoutMs } = context.config.limits
  const measure = (
    name: GaugeView['name'],
    limit: number,
    read: (usage: Usage) => number | null,
  ): GaugeView => {
    const [used = null, ofChildren = null, inherited = null] = [totals, children, copied].map(read)
    return { name, used, limit: toLimit(limit), children: ofChildren, inherited }
  }
  const time = measureTimeUsed(context, timeoutMs, at)
  return [
    measure('tokens', tokenBudget, counted),
    measure('output tokens', outputTokens, (usage) => usage.outputTokens),
    measure('cost', costLimit, (usage) => usage.cost),
    { name: 'steps', used: context.steps, limit: maxSteps, children: 0, inherited: inherited.steps },
    { name: 'time', used: time, limit: toLimit(timeoutMs), children: 0, inherited: 0 },
  ]
}

const toLimit = (limit: number): number | null => (limit > 0 ? limit : null)

/** The clock stops while the run rests. Null without a limit. */
function measureTimeUsed({ deadline, timeLeft }: AgentContext, timeoutMs: number, at: number): number | null {
  if (timeoutMs === 0) return null
  const left = timeLeft ?? (deadline === null ? timeoutMs : deadline - at)
  return Math.min(timeoutMs, Math.max(0, timeoutMs - left))
}

export interface MomentOptions {
  /** Undefined without an agent. */
  tools: ToolSet | undefined
  /** Undefined if the agent is not the session's agent, or has no instructions. */
  instructions: string | undefined
  notes: CallNotes
  actions: MomentView['actions']
  now?: number
  unread?: readonly ControlEvent[]
  /** Minimum number of messages, counted from the end. Defaults to all. */
  latest?: number
}

export function createMomentView(
  step: SessionStep,
  {
    tools,
    instructions,
    notes,
    actions,
    now = step.record.at,
    unread = [],
    latest = Infinity,
  }: MomentOptions,
): MomentView {
  const { record, before, after } = step
  const context = after.session.run?.context ?? null
  const previous = before.session.run?.context ?? null
  const effective = findEffectiveInstructions(after.session, instructions)
  return {
    seq: record.seq,
    ...createTranscript(after, notes, { seq: record.seq, latest }),
    instructions: effective && {
      ...effective,
      text: toShownText(effective.text),
      forkAt: notes.forkPoints.get(`run ${after.session.runs}`) ?? null,
    },
    record: createRecordView(step),
    context: context && createContextView(context),
    changed: context === null ? [] : listChanges(previous ?? {}, context),
    guards: context === null ? [] : createGuardViews(context),
    budget: context === null ? [] : createGauges(context, after, record.at),
    pending: context === null ? [] : createPendingViews(context, tools),
    grants: createGrantViews(step, notes.grants, { now, unread }),
    actions,
  }
}

/** Context keys that never change or that the transcript shows. */
const hiddenKeys = ['messages', 'config', 'tools', 'features'] as const

const shownValues = new WeakMap<object, unknown>()

function createContextView(context: AgentContext): unknown {
  const { messages, config, tools, features, ...rest } = maskContext(context)
  return {
    ...(toShownValue(rest) as object),
    messages: formatCount(messages.length, 'message'),
    config: toShownOnce(config),
    tools: toShownOnce(tools),
    features,
  }
}

/** Cached, because the value is the same in all moments of a run. */
function toShownOnce(value: object): unknown {
  return getOrCreate(shownValues, value, () => toShownValue(value))
}

function createRecordView({ record: { seq, at, type }, entry }: SessionStep): unknown {
  return { seq, at, type, ...(toShownValue(getContent(entry)) as object) }
}

/** Without the state, because the moment shows it. */
function getContent(entry: RecordContent): object {
  const { type: _type, ...content } = entry
  switch (entry.type) {
    case 'opened': {
      const { state, forkedFrom, version, name } = entry
      const brought = state && formatCount(state.messages.length, 'message')
      return { version, name, ...(brought && { state: brought }), ...(forkedFrom && { forkedFrom }) }
    }
    case 'start': {
      const { config: _config, tools: _tools, features, ...input } = entry.input
      return { input: features.inputShields ? { ...input, input: withheldNote } : input }
    }
    case 'snapshot':
      return { version: entry.version, runs: entry.runs, state: entry.state.value }
    default: {
      const { event } = entry
      if (!event.withheld) return content
      return {
        event: {
          type: event.type,
          ...('callId' in event && { callId: event.callId }),
          withheld: withheldNote,
        },
      }
    }
  }
}

/** Paths where two contexts differ. Each list and each string counts as one value. */
function listChanges(before: object, after: object, depth = 3): string[] {
  const [a, b] = [before as Record<string, unknown>, after as Record<string, unknown>]
  const keys = [...new Set([...Object.keys(a), ...Object.keys(b)])]
  return keys.flatMap((key) => {
    const [was, is] = [a[key], b[key]]
    if (was === is || (hiddenKeys as readonly string[]).slice(1).includes(key)) return []
    if (depth > 1 && isObject(was) && isObject(is))
      return listChanges(was, is, depth - 1).map((inner) => `${key}.${inner}`)
    return isSame(was, is) ? [] : [key]
  })
}

/** Compares long lists by item identity and other values as JSON. */
function isSame(a: unknown, b: unknown): boolean {
  if (Array.isArray(a) && Array.isArray(b) && (a.length !== b.length || a.length > 50)) {
    return a.length === b.length && a.every((item, i) => item === b[i])
  }
  return JSON.stringify(a) === JSON.stringify(b)
}

function createPendingViews(context: AgentContext, toolSet: ToolSet | undefined): PendingView[] {
  const tools = toolSet && getSpeakerTools(toolSet, context.speaker)
  return listAnswerableCalls(context).map((call) => ({
    callId: call.callId,
    name: call.name,
    needs: call.needs,
    arguments: toShownText(call.arguments),
    fingerprint: call.fingerprint,
    ...(call.messageId !== undefined && { messageId: call.messageId }),
    isGrantable: call.needs === 'approval' && call.path === undefined && call.hosted !== true,
    schema: (tools && findTool(call, tools))?.parameters ?? null,
    ...(call.elicitation && { elicitation: call.elicitation }),
    ...(call.reason !== undefined && { reason: toShownText(call.reason) }),
    ...(call.expiresAt !== undefined && { expiresAt: call.expiresAt }),
    ...(call.onExpiry && { onExpiry: call.onExpiry }),
  }))
}
