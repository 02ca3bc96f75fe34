import type { ProgressConfig, StepsWithBlock } from '../../guards/progress-config.js'
import { collectFindings } from '../../guards/state.js'
import { getBudgetTotals, toBudgetLimits } from '../../machines/agent/budget-totals.js'
import type { AgentContext, ControlEvent } from '../../machines/agent/context.js'
import { type Grant, isGrantOver } from '../../machines/agent/grant.js'
import { changeGrants } from '../../machines/agent/grants.js'
import { maskContext } from '../../machines/agent/mask-uncleared.js'
import { listAnswerableCalls } from '../../machines/agent/questions.js'
import type { Usage } from '../../machines/agent/usage.js'
import { isObject, memoize } from '../core/base/values.js'
import { formatCount } from '../core/format/format-words.js'
import { getSpeakerTools } from '../core/live/agent-parts.js'
import { findTool } from '../core/run/answer-events.js'
import type { RecordContent } from '../core/sessions/log/log-record.js'
import type { ToolSet } from '../core/tools/tool-set.js'
import type { Answer } from './requests.js'
import { findEffectiveInstructions, type Moment, type SessionStep } from './session-step.js'
import {
  type CallNotes,
  createTranscript,
  type GrantNote,
  toShownText,
  toShownValue,
  withheldNote,
} from './shown-values.js'

export interface GaugeView {
  name: 'tokens' | 'output tokens' | 'cost' | 'steps' | 'time'
  used: number | null
  limit: number | null
  children: number | null
  /** The part that a fork copied from its original. Null if unknown. */
  inherited: number | null
}

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

export type MomentView = ReturnType<typeof createMomentView>
export type PendingView = MomentView['pending'][number]
export type GrantView = MomentView['grants'][number]

export interface MomentOptions {
  /** Undefined without an agent. */
  tools: ToolSet | undefined
  /** Undefined if the agent is not the session's agent, or has no instructions. */
  instructions: string | undefined
  notes: CallNotes
  /** The actions that the page offers. Empty without an agent, or for a record before the last one. */
  actions: Answer['type'][]
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
) {
  const { record, after, was, now: context } = step
  const effective = findEffectiveInstructions(after.session, instructions)
  return {
    seq: record.seq,
    ...createTranscript(after, notes, { seq: record.seq, latest }),
    /** Null if there are none, or if they are unknown because the studio does not have the agent. */
    instructions: effective && {
      ...effective,
      text: toShownText(effective.text),
      forkAt: notes.forkPoints.get(`run ${after.session.runs}`) ?? null,
    },
    /** Without secrets. */
    record: createRecordView(step),
    context: context && createContextView(context),
    /** Context paths that this record changed, such as `usage.run.totalTokens`. */
    changed: context === null ? [] : listChanges(was ?? {}, context),
    guards: context === null ? [] : createGuardViews(context),
    budget: context === null ? [] : createGauges(context, after, record.at),
    pending: context === null ? [] : createPendingViews(context, tools),
    grants: createGrantViews(step, notes.grants, { now, unread }),
    actions,
  }
}

/** Context keys that never change or that the transcript shows. */
const hiddenKeys = ['messages', 'config', 'tools', 'features'] as const

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
const toShownOnce = memoize((value: object) => toShownValue(value))

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

function createPendingViews(context: AgentContext, toolSet: ToolSet | undefined) {
  const tools = toolSet && getSpeakerTools(toolSet, context.speaker)
  return listAnswerableCalls(context).map((call) => ({
    callId: call.callId,
    name: call.name,
    needs: call.needs,
    arguments: toShownText(call.arguments),
    fingerprint: call.fingerprint,
    ...(call.messageId !== undefined && { messageId: call.messageId }),
    /** Whether an approval can also approve later calls with the same arguments. */
    isGrantable: call.needs === 'approval' && call.path === undefined && call.hosted !== true,
    /** JSON Schema of the arguments. Null if the studio does not have the agent. */
    schema: (tools && findTool(call, tools))?.parameters ?? null,
    ...(call.elicitation && { elicitation: call.elicitation }),
    ...(call.reason !== undefined && { reason: toShownText(call.reason) }),
    ...(call.expiresAt !== undefined && { expiresAt: call.expiresAt }),
    ...(call.onExpiry && { onExpiry: call.onExpiry }),
  }))
}

export interface GuardView {
  name: string
  watches: string
  /** The count and the threshold of the guard. Null for guards that do not count. */
  streak: number | null
  threshold: number | null
  evidence: string
  /** The next action as a phrase, such as `nudge at 3`. */
  next: string
  isOn: boolean
}

function createGuardViews(context: AgentContext): GuardView[] {
  const { guardrails: state, config, verdict } = context
  const spoken = collectFindings(state, config.guardrails)
  const findEvidence = (guard: string, rule?: string): string => {
    const current = verdict?.guard === guard && verdict.rule === rule ? verdict : undefined
    const found = current ?? spoken.find((one) => one.guard === guard && one.rule === rule)
    return toShownText(found?.evidence ?? '')
  }
  return [
    ...createProgressViews(
      context,
      (rule) => findEvidence('no_progress', rule) || findEvidence('policy_denied', rule),
    ),
    ...createOtherViews(context, findEvidence),
    ...createLimitViews(context),
    ...Object.entries(state.user).map(([name, remembered]) =>
      createGuardView(name, {
        watches: '',
        evidence:
          verdict?.userGuard === name
            ? toShownText(verdict.evidence)
            : toShownText(JSON.stringify(remembered), 600),
        next: 'custom guard',
      }),
    ),
  ]
}

const createGuardView = (name: string, known: Partial<GuardView>): GuardView => ({
  name,
  watches: watches[name] ?? '',
  streak: null,
  threshold: null,
  evidence: '',
  next: '',
  isOn: true,
  ...known,
})

type Rule = Exclude<keyof ProgressConfig, 'waiting' | 'memory' | 'onHalt' | 'lastWords'>

const watches: Record<string, string> & Record<`progress.${Rule}`, string> = {
  'progress.stale': 'steps in a row with the same calls and no new results',
  'progress.mixed': 'steps in a row with different calls and no new results',
  'progress.failing': 'steps in a row in which every call failed',
  'progress.sameError': 'calls to one tool that fail with the same error',
  'progress.unknownTools': 'calls to tools that do not exist',
  'progress.refused': 'steps in a row in which every call was refused',
  'progress.policyDenied': "the same call, denied by its tool's policy",
  'progress.transient': 'temporary failures in a row without a success',
  repeatedCall: 'steps in a row with the same call',
  repeatedOutput: 'rounds with the same results',
  cycle: 'rounds that repeat calls in the same order',
  failing: 'failed calls in a row',
  terminalDelegation: 'sub-agents that failed permanently',
  steps: 'model responses in this run',
  attempts: 'attempts of the current request',
  continuations: 'truncated answers that were continued',
  reprompts: 'repeated prompts after empty answers',
  'empty answers': 'repeated requests after empty answers',
  repairs: 'answers that did not match the schema',
}

function createProgressViews(context: AgentContext, findEvidence: (rule: string) => string): GuardView[] {
  const settings = context.config.guardrails.progress
  const state = context.guardrails.progress
  const counts: Record<Rule, number | null> = {
    stale: state.batch === null ? 0 : state.stale,
    mixed: state.batch === null ? state.stale : 0,
    failing: state.failing,
    sameError: Math.max(0, ...state.tools.map(({ errors }) => errors)),
    unknownTools: state.unknownTools,
    refused: state.refused,
    policyDenied: null,
    transient: state.transient,
  }
  return Object.entries(counts).map(([rule, count]) => {
    const steps = settings?.[rule as Rule] ?? null
    const streak = count === null ? null : Math.round(count * 10) / 10
    return createGuardView(`progress.${rule}`, {
      streak,
      ...findNext(streak ?? 0, steps),
      evidence: findEvidence(rule),
      isOn: steps !== null,
    })
  })
}

function findNext(count: number, steps: object | null): Pick<GuardView, 'threshold' | 'next'> {
  const { nudgeAt, blockAt, haltAt } = (steps ?? {}) as Partial<StepsWithBlock>
  const all: [string, number | null | undefined][] = [
    ['nudge', nudgeAt],
    ['block', blockAt],
    ['halt', haltAt],
  ]
  const next = all.find(([, at]) => at != null && count < at) ?? all.findLast(([, at]) => at != null)
  if (next === undefined) return { threshold: null, next: '' }
  return { threshold: next[1] ?? null, next: `${next[0]} at ${next[1]}` }
}

function createOtherViews(
  { guardrails: state, config: { guardrails: config } }: AgentContext,
  findEvidence: (guard: string) => string,
): GuardView[] {
  const { repeatedCall, repeatedOutput, cycle, failing, maxRepeatedToolSteps } = config
  const view = (name: string, guard: string, isOn: boolean, known: Partial<GuardView>): GuardView => {
    const { streak = null } = known
    return createGuardView(name, { ...(isOn ? known : { streak }), evidence: findEvidence(guard), isOn })
  }
  return [
    view('repeatedCall', 'repeated_call', repeatedCall !== null, {
      streak: state.repeatedCall.count,
      threshold: maxRepeatedToolSteps,
      next: `${repeatedCall?.onRepeat} at ${maxRepeatedToolSteps}`,
    }),
    view('repeatedOutput', 'repeated_output', repeatedOutput !== null, {
      streak: state.repeatedOutput.rounds,
      threshold: repeatedOutput?.rounds ?? null,
      next: `halt at ${repeatedOutput?.rounds}`,
    }),
    view('cycle', 'cycle', cycle !== null, {
      streak: Math.max(0, ...state.cycle.matches),
      next: `nudge after ${cycle?.nudgeAt} rounds, halt after ${cycle?.haltAt}`,
    }),
    view('failing', 'repeated_failure', failing !== null, {
      threshold: failing && Math.min(failing.identical, failing.any),
      next: `halt at ${failing?.identical} identical failures, or ${failing?.any} of any kind`,
    }),
    view('terminalDelegation', 'terminal_delegation', config.terminalDelegation !== null, {
      next: 'halts when retrying a sub-agent cannot help',
    }),
  ]
}

function createLimitViews(context: AgentContext): GuardView[] {
  const { config, attempt, recoveries, reprompts, emptyRetries, outputRepairs, steps } = context
  const { emptyAnswer, maxTokensRecoveries } = config.guardrails
  const counter = (name: string, streak: number, threshold: number | null, next: string): GuardView => {
    const isOn = threshold !== null && threshold > 0
    return createGuardView(name, { streak, threshold, next: isOn ? next : '', isOn })
  }
  const { maxSteps } = config.limits
  return [
    counter('steps', steps, maxSteps, `the run ends after ${maxSteps} steps`),
    counter('attempts', attempt, config.retry.maxAttempts, 'the run ends with the provider’s error'),
    counter('continuations', recoveries, maxTokensRecoveries, 'a truncated answer is accepted'),
    counter('reprompts', reprompts, emptyAnswer?.reprompts ?? null, 'an empty answer ends the run'),
    counter('empty answers', emptyRetries, emptyAnswer?.retries ?? null, 'an empty answer ends the run'),
    counter('repairs', outputRepairs, config.completion.maxOutputRepairs, 'an invalid answer ends the run'),
  ]
}

/** Limited, because every moment of a session contains the grants. */
const mostViews = 200

const getGrants = ({ session: { run, state } }: SessionStep['after']): readonly Grant[] =>
  (run?.context ?? state).grants ?? []

export function recordGrants(
  notes: Map<string, GrantNote>,
  { record: { seq, at }, event, before, after }: SessionStep,
): void {
  const [former, present] = [getGrants(before), getGrants(after)]
  if (former === present) return
  const given = event?.type === 'GRANT' || event?.type === 'APPROVE' ? event.grant : undefined
  for (const { id } of present)
    if (!notes.has(id)) notes.set(id, { seq, uses: given?.id === id ? given.uses : undefined })
  const ids = new Set(present.map(({ id }) => id))
  for (const grant of former) {
    const note = notes.get(grant.id)
    if (note && !ids.has(grant.id)) note.removed = { grant, seq, at }
  }
}

/** Active grants come first. `unread` are inbox messages that the next run reads before it starts a call. */
function createGrantViews(
  { record, after, now: context }: SessionStep,
  notes: ReadonlyMap<string, GrantNote>,
  { now, unread = [] }: { now: number; unread?: readonly ControlEvent[] },
) {
  const present = getGrants(after)
  const foreseen = context ? applyMessages(context, unread, now) : present
  const removed = [...notes.values()].flatMap(({ removed: one, seq }) =>
    one && seq <= record.seq && one.seq <= record.seq ? [one] : [],
  )
  const ids = new Set(foreseen.map(({ id }) => id))
  const revoked = present.filter(({ id }) => !ids.has(id))
  const all = [
    ...foreseen.map((grant) => ({ grant, ended: findEnd(grant, now) })),
    ...revoked.map((grant) => ({ grant, ended: findEnd(grant, now) ?? ('revoked' as const) })),
    ...removed.map(({ grant, at }) => ({ grant, ended: findEnd(grant, at) ?? ('revoked' as const) })),
  ]
  return all
    .toSorted((a, b) => Number(a.ended !== null) - Number(b.ended !== null))
    .slice(0, mostViews)
    .map(({ grant, ended }) => toView(grant, notes, ended))
}

function applyMessages(context: AgentContext, unread: readonly ControlEvent[], now: number) {
  return unread.reduce(
    (grants, event) => changeGrants({ ...context, grants }, { now, ...event }),
    context.grants ?? [],
  )
}

/** How the grant ended. Null while it is active. */
type GrantEnd = 'used up' | 'expired' | 'revoked' | null

function findEnd(grant: Grant, now: number): GrantEnd {
  return !isGrantOver(grant, now) ? null : grant.uses === 0 ? 'used up' : 'expired'
}

function toView(
  { id, tool, speaker, when, arguments: exact = '{}', uses, until, givers }: Grant,
  notes: ReadonlyMap<string, GrantNote>,
  ended: GrantEnd,
) {
  return {
    id,
    tool,
    /** The agent that has the tool. Absent for the session's first agent. */
    ...(speaker !== undefined && { speaker }),
    /** As JSON: exactly these, or conditions by name. `{}` allows any. */
    arguments: toShownText(when ? JSON.stringify(when) : exact),
    isExact: when === undefined,
    usesLeft: uses ?? null,
    /** How many calls the grant allows in total. Null if unlimited or unknown. */
    uses: notes.get(id)?.uses ?? null,
    /** In milliseconds since the epoch. Null if it does not expire. */
    until: until ?? null,
    givers: givers.flatMap(({ by }) => (by ? [toShownText(by.id, 200)] : [])),
    ended,
  }
}
