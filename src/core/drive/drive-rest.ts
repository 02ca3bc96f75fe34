import { truncate } from '../../../guards/lib/cut.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import type { AgentState, PendingCall, Reason, RunFailure } from '../../../machines/agent/run-result.js'
import { toRunResult } from '../../../machines/agent/to-result.js'
import { findSleepLeft } from './wake-sleepers.js'
/**
 * The result of `runSession`. Plain JSON of at most 1,000 bytes, because engines store every result.
 * `agent.replay(session)` reads the full state from the store.
 * @example
 * const payer = createAgent({ model, store: memoryStore() })
 * const rest: SessionResult = await runSession(payer, { session: 'ann', input: 'Pay the invoices.' })
 * if (rest.state === 'WAITING_FOR_INPUT') console.log(rest.pending, rest.head)
 */
export interface SessionResult {
  session: string
  /** The number of the run in the session: 1, 2, … */
  turn: number
  /** The state of the run. The state is active only if the call was stopped before the next rest. */
  state: AgentState
  reason: Reason | null
  /** Number of the last record in the log. Answers with this number as `at` are ignored once the log has grown. */
  head: number
  /** Whether the call was stopped by its signal or by a long wait. If so, call `runSession` again. */
  stopped?: true
  /** Whether the call was stopped before the run read its `answers`. If so, pass them again. */
  undelivered?: true
  /**
   * No work is possible before this time, in milliseconds since the epoch, because the provider requested a long wait.
   */
  waitUntil?: number
  /**
   * Remainder of the wait until `waitUntil` when the call settled, in milliseconds. This value is also valid on a
   * machine with a different clock.
   */
  waitMs?: number
  /** The run sleeps until this time, in milliseconds since the epoch. Call `runSession` again at that time. */
  wakeAt?: number
  /**
   * Remainder of the sleep when the call settled, in milliseconds. This value is also valid on a machine with a
   * different clock.
   */
  wakeMs?: number
  /** The answer, unless it is too long. */
  output?: string
  /**
   * Length of an answer that is too long for `output`. Read the answer from `(await agent.replay(session)).run.output`.
   */
  outputLength?: number
  /** As many of the pending calls as fit. `pendingCount` is the total number. */
  pending?: Pick<PendingCall, 'callId' | 'name' | 'needs' | 'fingerprint'>[]
  pendingCount?: number
  /** Why the run ended in ERROR, or was ended by a limit or a shield. The message may be truncated. */
  error?: RunFailure
  /** Total tokens of the session. */
  totalTokens: number
  /** Total cost of the session in USD. Null if unknown. */
  cost: number | null
}

/** Maximum size of a result, in bytes of JSON. */
const maxRestBytes = 1000
const countJsonBytes = (value: unknown): number => new TextEncoder().encode(JSON.stringify(value)).length

/** Values that do not come from the run. */
export type RestParts = Pick<
  SessionResult,
  'turn' | 'head' | 'stopped' | 'undelivered' | 'waitUntil' | 'waitMs'
> & { now: number }

/** Summarizes the state of a run. */
export function createDriveRest(
  context: AgentContext,
  { turn, head, now, ...more }: RestParts,
): SessionResult {
  const { output, pending = [], error } = toRunResult(context)
  const { totalTokens, cost } = context.usage.session
  const rest: SessionResult = {
    session: context.sessionId,
    turn,
    state: context.state ?? 'RUNNING',
    reason: context.reason,
    head,
    ...more,
    ...findSleepLeft(context, now),
    totalTokens,
    cost,
  }
  if (error) rest.error = { ...error, code: truncate(error.code, 60), message: truncate(error.message, 200) }
  if (pending.length > 0) addPending(rest, pending)
  if (output) addOutput(rest, output)
  return rest
}

function addOutput(rest: SessionResult, output: string): void {
  if (countJsonBytes({ ...rest, output }) <= maxRestBytes) rest.output = output
  else rest.outputLength = output.length
}

function addPending(rest: SessionResult, all: readonly PendingCall[]): void {
  rest.pendingCount = all.length
  const pending: NonNullable<SessionResult['pending']> = []
  for (const { callId, name, needs, fingerprint } of all) {
    const next = [...pending, { callId, name, needs, fingerprint }]
    if (countJsonBytes({ ...rest, pending: next }) > maxRestBytes) break
    pending.push({ callId, name, needs, fingerprint })
  }
  if (pending.length > 0) rest.pending = pending
}
