import {
  initialTransition,
  transition,
  type AnyEventObject,
  type AnyMachineSnapshot,
  type AnyStateMachine,
} from 'xstate'
import { agentMachine } from '../../machines/agent.machine.js'
import type { AgentContext, AgentInput, AgentMachineEvent } from '../../machines/agent/context.js'
import { hasUnclearedContent } from '../../machines/agent/mask-uncleared.js'
import type { LogEntry } from '../../src/testing/reference-model/judge-log.js'
import type { MachinePath } from '../../src/testing/index.js'

/** The log of a generated path on this machine, with a snapshot at the end or after each event. */
export function writePathLog(
  path: MachinePath,
  input: AgentInput,
  { machine = agentMachine as AnyStateMachine, isSnappedOften = false } = {},
): LogEntry[] {
  const { messages, usage, guardrails, warnedOfBudget, fit = null, ...start } = input
  const state = { messages, usage, guardrails, warnedOfBudget, fit }
  const entries: LogEntry[] = []
  const write = (type: string, at: number, fields: object): void => {
    entries.push({ ...fields, seq: entries.length + 1, at, type })
  }
  let current = initialTransition(machine, input)[0] as AnyMachineSnapshot
  let now = input.now
  let isLater = false
  const snap = (): void => {
    const { status, value, context } = current
    write('snapshot', now, { version: 1, runs: 1, state: { status, value, context: context as object } })
  }
  write('opened', input.now, { version: 1, state })
  write('start', input.now, { input: start })
  // The first step of a path is the start.
  for (const { event: bare } of path.steps.slice(1)) {
    if (isSnappedOften) snap()
    const { backOffUntil } = current.context as AgentContext
    // The events of a path are simultaneous. A wait takes its time.
    now = Math.max(now, bare.type === 'xstate.done.actor.backOff' ? backOffUntil : (bare['now'] as number))
    const event = { ...mark(bare, input.features), now }
    // Time never goes backwards in a log. After a late event, questions and grants have expired that the path still has.
    isLater ||= now > bare['now']
    if (isLater && !current.can(event)) continue
    write('event', now, { event })
    current = transition(machine, current, event)[0] as AnyMachineSnapshot
  }
  snap()
  return entries
}

/** Like the write-ahead log: marks content that no shield has screened. */
function mark(event: AnyEventObject, features: AgentInput['features']): AnyEventObject {
  return hasUnclearedContent(event as AgentMachineEvent, features) ? { ...event, withheld: true } : event
}
