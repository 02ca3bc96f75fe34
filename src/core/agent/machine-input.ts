import type { AgentConfigInput } from '../../../machines/agent/config.js'
import type { ToolTraits } from '../../../machines/agent/batch-calls.js'
import {
  type AgentInput,
  type Features,
  type NewMessage,
  noFeatures,
  type SessionState,
} from '../../../machines/agent/context.js'
import { expectArgument, optionsRule } from '../base/values.js'
import { systemClock } from '../base/clock.js'
import { resolveConfig } from '../config/resolve-config.js'
import { createSessionState } from '../sessions/session-state.js'

export interface MachineInputOptions {
  /** Limits, guards and the other settings. Omitted keys take their defaults. Default: all defaults. */
  config?: AgentConfigInput
  /** The traits of each tool, by name. Default: no tools. Omitted traits are `false`. */
  tools?: Readonly<Record<string, Partial<ToolTraits>>>
  /** The optional states of the chart that the run visits. Default: none. */
  features?: Partial<Features>
  /** The state of the session after its last run. Default: a new session. */
  session?: Partial<SessionState>
  /** Milliseconds since the epoch. Default: the time of the call. */
  now?: number
  /** Default: `run`. */
  runId?: string
  /** Default: `session`. */
  sessionId?: string
}

/**
 * Creates the input of the bare `agentMachine`, for actors of your own. Throws a ConfigError (`invalid_config`) for a setting that
 * does not exist or has a wrong value.
 *
 * @example
 * const input = createInput('What is 19 + 23?', { tools: { add: { readOnly: true } }, config: { limits: { maxSteps: 10 } } })
 */
export function createInput(
  input: string | readonly NewMessage[],
  options: MachineInputOptions = {},
): AgentInput {
  expectArgument('createInput(input)', input, {
    is: (value) => typeof value === 'string' || Array.isArray(value),
    phrase: 'a text or a list of user messages',
  })
  expectArgument('createInput(input, options)', options, optionsRule)
  const {
    config,
    tools = {},
    features,
    session,
    now = systemClock.now(),
    runId = 'run',
    sessionId = 'session',
  } = options
  const traits = Object.entries(tools).map(([name, own]): [string, ToolTraits] => [
    name,
    { readOnly: false, idempotent: own.readOnly ?? false, polling: false, ...own },
  ])
  return {
    ...createSessionState(),
    ...session,
    now,
    runId,
    sessionId,
    config: resolveConfig(config),
    tools: Object.fromEntries(traits),
    features: { ...noFeatures, ...features },
    input: typeof input === 'string' ? [{ content: input }] : [...input],
  }
}
