import {
  type AgentContext,
  type AgentInput,
  createContext,
  noFeatures,
  type SessionState,
} from '../../../../machines/agent/context.js'
import type { Message } from '../../../../machines/agent/messages.js'
import { toRunResult } from '../../../../machines/agent/to-result.js'
import type { MachineState } from './log-record.js'
import { isRecord } from '../../../../guards/lib/stored.js'
import { restoreGuardrails } from '../../../../guards/state.js'
import { defaultConfig } from '../../config/defaults.js'
import { createSessionState } from '../session-state.js'
import { UsageError } from '../../base/errors.js'

/**
 * Converts a machine state to its stored format. The messages already contain the answer of a run, which can take 100
 * MB. The copies of the answer in the context and in the result of an ended run are omitted, because `restoreState`
 * recreates them.
 */
export function toStoredState(state: MachineState): MachineState {
  const { output: _result, ...rest } = state
  const lean = isEnded(state) ? (rest as MachineState) : state
  const { output, ...context } = state.context as AgentContext
  return output !== '' && output === getLastAnswer(context.messages) ? { ...lean, context } : lean
}

/**
 * Restores a stored state, including the parts that `toStoredState` omitted. The state history is dropped, because a
 * restored run continues from its current state.
 */
export function restoreState(stored: MachineState): MachineState & { context: AgentContext } {
  const storedContext = stored.context as AgentContext
  const isWhole = Object.hasOwn(storedContext, 'output')
  const context = completeContext(
    isWhole ? storedContext : { ...storedContext, output: getLastAnswer(storedContext.messages) },
  )
  const state = { ...stored, historyValue: {}, context }
  return isEnded(state) && stored['output'] === undefined ? { ...state, output: toRunResult(context) } : state
}

const isEnded = ({ status }: MachineState): boolean => status === 'done'

function getLastAnswer(messages: readonly Message[]): string {
  const content = messages.findLast(({ role }) => role === 'assistant')?.content
  return typeof content === 'string' ? content : ''
}

/** The input of a run from its log, with defaults for missing keys. */
export function completeInput(input: Omit<AgentInput, keyof SessionState>): typeof input {
  return {
    ...input,
    config: fillDefaults<AgentInput['config']>(defaultConfig, input.config),
    features: fillDefaults(noFeatures, input.features),
  }
}

/** Reads a run's context from a snapshot, with the initial values of a run for missing keys. */
function completeContext(stored: AgentContext): AgentContext {
  const { runId, sessionId, tools, messages } = stored
  const beginning = { runId, sessionId, tools, now: 0, input: [] }
  const fresh = createContext({
    ...createSessionState(),
    ...beginning,
    messages,
    config: fillDefaults<AgentInput['config']>(defaultConfig, stored.config),
    features: fillDefaults(noFeatures, stored.features),
  })
  const guardrails = restoreGuardrails(stored.guardrails)
  return {
    ...fresh,
    ...stored,
    config: fresh.config,
    features: fresh.features,
    ...('state' in guardrails && { guardrails: guardrails.state }),
  }
}

/** Returns the value itself if no key is missing, which is the common case. */
function fillDefaults<Value extends object>(defaults: Value, value: Value): Value {
  const own = value as Record<string, unknown>
  let whole: Record<string, unknown> | undefined
  for (const [key, fallback] of Object.entries(defaults) as [string, unknown][]) {
    const value = own[key]
    const filled =
      value === undefined
        ? fallback
        : isRecord(fallback) && isRecord(value)
          ? fillDefaults(fallback, value)
          : value
    if (filled !== value) whole = { ...(whole ?? own), [key]: filled }
  }
  return (whole ?? value) as Value
}

/**
 * Completes a machine snapshot that an app has stored. Keys that did not exist in an earlier version get their
 * defaults.
 * @throws {UsageError} `invalid_snapshot` if the value is not a snapshot
 */
export function completeSnapshot<Snapshot extends object>(stored: Snapshot): Snapshot {
  const { context } = stored as { context?: unknown }
  const { runId, messages, calls } = isRecord(context) ? context : {}
  if (typeof runId !== 'string' || !Array.isArray(messages) || !Array.isArray(calls))
    throw new UsageError(
      'invalid_snapshot',
      'This is not an agent snapshot. Pass the return value of run.snapshot() or actor.getPersistedSnapshot().',
      'snapshot',
    )
  return { ...stored, historyValue: {}, context: completeContext(context as unknown as AgentContext) }
}
