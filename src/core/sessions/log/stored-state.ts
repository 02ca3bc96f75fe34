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

/** Omits the copies of a run's answer (up to 100 MB). `restoreState` recreates them from the messages. */
export function toStoredState(state: MachineState): MachineState {
  const { output: _result, ...rest } = state
  const lean = isEnded(state) ? (rest as MachineState) : state
  const { output, ...context } = state.context as AgentContext
  return output !== '' && output === getLastAnswer(context.messages) ? { ...lean, context } : lean
}

/** Restores a stored state. The state history is dropped, because a restored run continues from its current state. */
export function restoreState(stored: MachineState): MachineState & { context: AgentContext } {
  const output = getLastAnswer(stored.context.messages)
  const context = completeContext({ output, ...stored.context } as AgentContext)
  const state = { ...stored, historyValue: {}, context }
  return isEnded(state) ? { ...state, output: toRunResult(context) } : state
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

function completeContext(stored: AgentContext): AgentContext {
  const { runId, sessionId, tools, messages, config, features } = stored
  const input = completeInput({ runId, sessionId, tools, now: 0, input: [], config, features })
  const fresh = createContext({ ...createSessionState(), ...input, messages })
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

/** Completes a snapshot that an app has stored. @throws {UsageError} `invalid_snapshot` */
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
