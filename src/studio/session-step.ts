import type { StateValue } from 'xstate'
import type { AgentContext, AgentMachineEvent, GuardrailVerdict } from '../../machines/agent/context.js'
import { noUsage, subtractUsage, type Usage } from '../../machines/agent/usage.js'
import type { FoldedRun, FoldedSession } from '../core/sessions/fold-session.js'
import type { RecordContent } from '../core/sessions/log/log-record.js'
import type { LogRecord } from '../core/sessions/store/store.js'

export interface Moment {
  session: Readonly<FoldedSession>
  /** Usage of the latest run's sub-agents. */
  children: Usage
  inherited: Inherited
}

/** What a fork copied from its original: the usage of all runs, and the usage and steps of the copied run. */
export interface Inherited {
  session: Usage
  run: Usage
  steps: number
}

export const noInheritance: Inherited = { session: noUsage, run: noUsage, steps: 0 }

/** The cost is null if the usage or the inherited usage has no price. */
export function getOwnUsage({ session: { run, state }, inherited }: Omit<Moment, 'children'>): Usage {
  const usage = run?.context.usage.session ?? state.usage
  if (inherited.session === noUsage) return usage
  return subtractUsage(inherited.session, usage) ?? noUsage
}

export const isCopiedState = (before: Inherited, seq: number): boolean =>
  before !== noInheritance && seq === 2

/** A fork copies its state in its first two records. */
export function updateInherited(before: Inherited, entry: RecordContent, session: FoldedSession): Inherited {
  const { context } = session.run ?? {}
  if (entry.type === 'opened' && entry.forkedFrom) return { ...before, session: session.state.usage }
  if (entry.type === 'snapshot' && isCopiedState(before, session.head) && context)
    return { ...context.usage, steps: context.steps }
  return entry.type === 'start' && before.run !== noUsage ? { ...before, run: noUsage, steps: 0 } : before
}

export interface SessionStep {
  record: LogRecord
  entry: RecordContent
  event: AgentMachineEvent | null
  before: Moment
  after: Moment
  /** The context of the run before and after the record. */
  was: AgentContext | null
  now: AgentContext | null
  transitionIds: string[]
}

/** Paths of the innermost active states. */
export function listActivePaths(run: FoldedRun | null): string[] {
  return run === null ? [] : listLeaves(run.value as StateValue)
}

function listLeaves(value: StateValue, above = ''): string[] {
  if (typeof value === 'string') return [`${above}${value}`]
  return Object.entries(value).flatMap(([key, inner]) =>
    inner === undefined ? [] : listLeaves(inner, `${above}${key}.`),
  )
}

export interface InstructionsView {
  text: string
  /** Where the instructions come from: the `agent` (current), this `step` only, or this `fork` only. */
  from: 'agent' | 'step' | 'fork'
  /** The first record of the run, where a fork with other instructions starts. Null if unknown. */
  forkAt: number | null
}

/** From the fork, or else from the step, or else from the agent. */
export function findEffectiveInstructions(
  { run, state }: Pick<FoldedSession, 'run' | 'state'>,
  own: string | undefined,
): Omit<InstructionsView, 'forkAt'> | null {
  const forked = (run?.context ?? state).terms?.instructions
  if (forked !== undefined) return { text: forked, from: 'fork' }
  const planned = run?.context.plan?.instructions
  if (planned !== undefined) return { text: planned, from: 'step' }
  return own ? { text: own, from: 'agent' } : null
}

/** Formats `repeated_call`, `progress.stale`, or the name of a custom guard. */
export function formatGuardName({ guard, rule, userGuard }: GuardrailVerdict): string {
  return userGuard ?? (rule === undefined ? guard : `progress.${rule}`)
}

export function findResponse(event: AgentMachineEvent | null) {
  const isAnswer = event?.type === 'xstate.done.actor.model' || event?.type === 'xstate.done.actor.conclusion'
  return isAnswer ? event.output.response : null
}

export function findUsage(event: AgentMachineEvent | null): Usage | null {
  const response = findResponse(event)
  if (response) return response.usage
  switch (event?.type) {
    case 'xstate.error.actor.model':
    case 'xstate.error.actor.conclusion':
      return event.error.usage
    case 'xstate.done.actor.fitting':
      return event.output.usage
    case 'TOOL_RESULT':
    case 'CHILD_USAGE':
      return event.usage ?? null
    default:
      return null
  }
}

/** When a sleeping run wakes. A run that waits for a shared budget also has a wake time. */
export function findWakeTime({ state, wakeAt }: AgentContext): number | null {
  return state === 'PAUSED' ? wakeAt : null
}

export type RequestEnd = Extract<
  AgentMachineEvent,
  { type: `xstate.${'done' | 'error'}.actor.${'model' | 'conclusion'}` }
>

export const endsRequest = (event: AgentMachineEvent | null): event is RequestEnd =>
  /^xstate\.(done|error)\.actor\.(model|conclusion)$/.test(event?.type ?? '')
