import type { AgentConfigInput } from '../../../machines/agent/config.js'
import { type ToolTraits, type BatchCall, isRunnable } from '../../../machines/agent/batch-calls.js'
import {
  type AgentInput,
  type Features,
  type NewMessage,
  noFeatures,
  type SessionState,
  type AgentContext,
} from '../../../machines/agent/context.js'
import { expectArgument, optionsRule } from '../base/values.js'
import { systemClock } from '../base/clock.js'
import { resolveConfig } from '../config/resolve-config.js'
import { createSessionState } from '../sessions/session-state.js'
import type { PendingCall, RunInProgress, RunResult } from '../../../machines/agent/run-result.js'
import { toRunResult } from '../../../machines/agent/to-result.js'
import { listAnswerableCalls } from '../../../machines/agent/questions.js'
import type { Usage } from '../../../machines/agent/usage.js'
import { completeSnapshot } from '../sessions/log/stored-state.js'
export interface MachineInputOptions {
  /** Limits, guards and the other settings. Omitted keys use their defaults. */
  config?: AgentConfigInput
  /** Tool traits by name. Omitted traits are false. */
  tools?: Readonly<Record<string, Partial<ToolTraits>>>
  /** The optional substates that the run uses. Defaults to none. */
  features?: Partial<Features>
  /** The state of the session after its last run. Omit it for a new session. */
  session?: Partial<SessionState>
  /** Milliseconds since the epoch. Defaults to the current time. */
  now?: number
  /** The id of the run. Defaults to `run`. */
  runId?: string
  /** The id of the session. Defaults to `session`. */
  sessionId?: string
}

/**
 * Creates the input of the bare `agentMachine` for custom actors. Throws a ConfigError (`invalid_config`) for
 * an unknown setting or an invalid value.
 * @example const input = createInput('What is 19 + 23?', { tools: { add: { readOnly: true } } })
 */
export function createInput(
  input: string | readonly NewMessage[],
  options: MachineInputOptions = {},
): AgentInput {
  expectArgument('createInput(input)', input, {
    is: (value) => typeof value === 'string' || Array.isArray(value),
    phrase: 'a string or a list of user messages',
  })
  expectArgument('createInput(input, options)', options, optionsRule)
  const { config, tools = {}, features, session } = options
  const traits = Object.entries(tools).map(([name, own]): [string, ToolTraits] => [
    name,
    { readOnly: false, idempotent: own.readOnly ?? false, polling: false, ...own },
  ])
  return {
    ...createSessionState(),
    ...session,
    now: options.now ?? systemClock.now(),
    runId: options.runId ?? 'run',
    sessionId: options.sessionId ?? 'session',
    config: resolveConfig(config),
    tools: Object.fromEntries(traits),
    features: { ...noFeatures, ...features },
    input: typeof input === 'string' ? [{ content: input }] : [...input],
  }
}

/** `actor.getSnapshot()` or `actor.getPersistedSnapshot()` of an agent's actor, or either after JSON. */
export type AnyAgentSnapshot = object

/**
 * The pending calls of a snapshot. Answer them with `APPROVE`, `REJECT` or `TOOL_OUTPUT`. Calls of sub-agents
 * have a `path`.
 * @example
 * const actor = createActor(agent.machine, { input: 'Go.' }).start()
 * for (const { callId, needs } of pendingCalls(actor.getSnapshot()))
 *   if (needs === 'approval') actor.send({ type: 'APPROVE', callId })
 * @throws {UsageError} `invalid_snapshot`
 */
export function pendingCalls(snapshot: AnyAgentSnapshot): PendingCall[] {
  return listAnswerableCalls(readContext(snapshot))
}

/**
 * The calls of the current batch that a custom `runTools` actor has to run: cleared by the shields, without a result or
 * an open question.
 * @example
 * const actor = createActor(agent.machine, { input: 'Go.' }).start()
 * const names = runnableCalls(actor.getSnapshot()).map(({ name }) => name)
 * @throws {UsageError} `invalid_snapshot`
 */
export function runnableCalls(snapshot: AnyAgentSnapshot): BatchCall[] {
  return readContext(snapshot).calls.filter(isRunnable)
}

/**
 * The result of a snapshot's run. Before the run ends, the result has the current `state` and the data so far.
 * @example
 * const actor = createActor(agent.machine, { input: 'Go.' }).start()
 * const { state, output, steps } = outputOf(actor.getSnapshot())
 * @throws {UsageError} `invalid_snapshot`
 */
export function outputOf(snapshot: AnyAgentSnapshot): RunResult | RunInProgress {
  return toRunResult(readContext(snapshot))
}

/**
 * Tokens and cost of the run so far, including sub-agents.
 * @example
 * const actor = createActor(agent.machine, { input: 'Go.' }).start()
 * const { totalTokens, cost } = usageOf(actor.getSnapshot())
 * @throws {UsageError} `invalid_snapshot`
 */
export function usageOf(snapshot: AnyAgentSnapshot): Usage {
  return readContext(snapshot).usage.run
}

function readContext(snapshot: AnyAgentSnapshot): AgentContext {
  return (completeSnapshot(snapshot ?? {}) as { context: AgentContext }).context
}
