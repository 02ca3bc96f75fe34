import { isRecord } from '../../../../guards/lib/stored.js'
import { restoreGuardrails } from '../../../../guards/state.js'
import {
  type AgentContext,
  type AgentInput,
  createContext,
  noFeatures,
  type SessionState,
} from '../../../../machines/agent/context.js'
import { defaultConfig } from '../../config/defaults.js'
import { createSessionState } from '../session-state.js'

/** The input of a run from its log; keys that it lacks get their defaults. */
export function completeInput(input: Omit<AgentInput, keyof SessionState>): typeof input {
  return {
    ...input,
    config: fillDefaults<AgentInput['config']>(defaultConfig, input.config),
    features: fillDefaults(noFeatures, input.features),
  }
}

/** A run's context from a snapshot; keys that it lacks are as at the start of a run. */
export function completeContext(stored: AgentContext): AgentContext {
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

/** The value itself when it lacks nothing, as most do. */
function fillDefaults<Value extends object>(defaults: Value, value: Value): Value {
  const own = value as Record<string, unknown>
  let whole: Record<string, unknown> | undefined
  for (const [key, fallback] of Object.entries(defaults) as [string, unknown][]) {
    const given = own[key]
    const kept =
      given === undefined
        ? fallback
        : isRecord(fallback) && isRecord(given)
          ? fillDefaults(fallback, given)
          : given
    if (kept !== given) whole = { ...(whole ?? own), [key]: kept }
  }
  return (whole ?? value) as Value
}
