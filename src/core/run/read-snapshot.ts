import { type BatchCall, isRunnable } from '../../../machines/agent/batch-calls.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import type { PendingCall, RunInProgress, RunResult } from '../../../machines/agent/run-result.js'
import { listAnswerableCalls, toCurrentResult } from '../../../machines/agent/to-result.js'
import type { Usage } from '../../../machines/agent/usage.js'
import { completeSnapshot } from '../sessions/complete-snapshot.js'

/** A snapshot of an agent's actor: `actor.getSnapshot()`, `actor.getPersistedSnapshot()`, or either after JSON. */
export type AnyAgentSnapshot = object

/**
 * The calls of a snapshot that can be answered now: send `APPROVE`, `REJECT` or `TOOL_OUTPUT` with what is in them. Those of
 * sub-agents have a `path`. Empty where none waits.
 *
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
 * The calls of the current batch that a `runTools` actor of your own runs: without a result, without a question to a person or
 * to the client, and checked by the shields.
 *
 * @example
 * const actor = createActor(agent.machine, { input: 'Go.' }).start()
 * const names = runnableCalls(actor.getSnapshot()).map(({ name }) => name)
 * @throws {UsageError} `invalid_snapshot`
 */
export function runnableCalls(snapshot: AnyAgentSnapshot): BatchCall[] {
  return readContext(snapshot).calls.filter(isRunnable)
}

/**
 * What the run of a snapshot has come to: the output of its actor when it is done, and before that the same as far as it is
 * known, with the `state` that the run is in.
 *
 * @example
 * const actor = createActor(agent.machine, { input: 'Go.' }).start()
 * const { state, output, steps } = outputOf(actor.getSnapshot())
 * @throws {UsageError} `invalid_snapshot`
 */
export function outputOf(snapshot: AnyAgentSnapshot): RunResult | RunInProgress {
  return toCurrentResult(readContext(snapshot))
}

/**
 * The tokens and the cost of the run so far, sub-agents included.
 *
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
