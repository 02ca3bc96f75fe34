import { listAnswerableCalls } from '../../machines/agent/to-result.js'
import type { AgentContext } from '../../machines/agent/context.js'
import { maskContext } from '../../machines/agent/mask-uncleared.js'
import { findTool } from '../core/run/edited-arguments.js'
import type { RecordContent } from '../core/sessions/log/record-content.js'
import type { WrittenEdit } from '../core/sessions/fork-edit.js'
import type { ToolSet } from '../core/tools/tool-set.js'
import { gaugesOf } from './gauges.js'
import { guardViews } from './guard-views.js'
import type { MomentView, PendingView } from './protocol.js'
import { shownText, shownValue, transcriptOf } from './shown.js'
import type { Step } from './step.js'

/** What a moment is seen with. */
export interface Sight {
  /** Of the agent that answers; undefined without one. */
  tools: ToolSet | undefined
  /** What is otherwise in this session than in the one that it was forked from. */
  edit: WrittenEdit | undefined
  /** How long calls took, by the ids of their results. */
  durations: ReadonlyMap<string, number>
  actions: MomentView['actions']
}

/** A session as it stood after one record of its log. */
export function momentView(step: Step, { tools, edit, durations, actions }: Sight): MomentView {
  const { record, before, after } = step
  const context = after.standing.run?.context ?? null
  const then = before.standing.run?.context ?? null
  return {
    seq: record.seq,
    transcript: transcriptOf(after, edit, durations),
    record: recordView(step),
    context: context && contextView(context),
    changed: context === null ? [] : changedIn(then ?? {}, context),
    guards: context === null ? [] : guardViews(context),
    budget: context === null ? [] : gaugesOf(context, after.children, record.at),
    pending: context === null ? [] : pendingViews(context, tools),
    actions,
  }
}

/** What never changes, and what the transcript shows already. */
const leftOut = ['messages', 'config', 'tools', 'features'] as const

const settled = new WeakMap<object, unknown>()

function contextView(context: AgentContext): unknown {
  const { messages, config, tools, features, ...rest } = maskContext(context)
  return {
    ...(shownValue(rest) as object),
    messages: `${messages.length} messages`,
    config: once(config),
    tools: once(tools),
    features,
  }
}

/** It is the same in every moment of a run. */
function once(value: object): unknown {
  const known = settled.get(value) ?? shownValue(value)
  settled.set(value, known)
  return known
}

const withheld = '[withheld: a shield decides what of it may be read]'

function recordView({ record: { seq, at, type }, entry }: Step): unknown {
  return { seq, at, type, ...(shownValue(contentOf(entry)) as object) }
}

/** A record as it was written, but for states in it, which the moment itself shows. */
function contentOf(entry: RecordContent): object {
  const { type: _type, ...content } = entry
  switch (entry.type) {
    case 'opened': {
      const { state, forkedFrom, version, name } = entry
      const brought = state && `${state.messages.length} messages`
      return { version, name, ...(brought && { state: brought }), ...(forkedFrom && { forkedFrom }) }
    }
    case 'start': {
      const { config: _config, tools: _tools, features, ...input } = entry.input
      return { input: features.inputShields ? { ...input, input: withheld } : input }
    }
    case 'snapshot':
      return { version: entry.version, runs: entry.runs, state: entry.state.value }
    default: {
      const { event } = entry
      if (!event.withheld) return content
      return { event: { type: event.type, ...('callId' in event && { callId: event.callId }), withheld } }
    }
  }
}

/** Paths below which two states differ; of lists and texts as a whole. */
function changedIn(before: object, after: object, depth = 3): string[] {
  const [a, b] = [before as Record<string, unknown>, after as Record<string, unknown>]
  const keys = [...new Set([...Object.keys(a), ...Object.keys(b)])]
  return keys.flatMap((key) => {
    const [was, is] = [a[key], b[key]]
    if (was === is || (leftOut as readonly string[]).slice(1).includes(key)) return []
    if (depth > 1 && isMap(was) && isMap(is))
      return changedIn(was, is, depth - 1).map((inner) => `${key}.${inner}`)
    return isSame(was, is) ? [] : [key]
  })
}

const isMap = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Equal texts say nothing about long lists that have grown: their ends do. */
function isSame(a: unknown, b: unknown): boolean {
  if (Array.isArray(a) && Array.isArray(b) && (a.length !== b.length || a.length > 50)) {
    return a.length === b.length && a.every((item, i) => item === b[i])
  }
  return JSON.stringify(a) === JSON.stringify(b)
}

function pendingViews(context: AgentContext, tools: ToolSet | undefined): PendingView[] {
  return listAnswerableCalls(context).map((call) => ({
    callId: call.callId,
    name: call.name,
    needs: call.needs,
    arguments: shownText(call.arguments),
    fingerprint: call.fingerprint,
    schema: (tools && findTool(call, tools))?.parameters ?? null,
  }))
}
