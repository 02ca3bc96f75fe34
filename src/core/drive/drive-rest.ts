import { truncate } from '../../../guards/lib/words.js'
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
  /** The provider requested a wait until this time, in milliseconds since the epoch. */
  waitUntil?: number
  /** The rest of that wait when the call settled, in milliseconds, also valid on a machine with a different clock. */
  waitMs?: number
  /** The run sleeps until this time, in milliseconds since the epoch. Call `runSession` again at that time. */
  wakeAt?: number
  /** The rest of the sleep when the call settled, in milliseconds, also valid on a machine with a different clock. */
  wakeMs?: number
  /** The answer, unless it is too long. */
  output?: string
  /** Length of an answer that is too long, which `(await agent.replay(session)).run.output` has. */
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
const fits = (rest: SessionResult): boolean =>
  new TextEncoder().encode(JSON.stringify(rest)).length <= maxRestBytes

export type RestParts = Pick<
  SessionResult,
  'turn' | 'head' | 'stopped' | 'undelivered' | 'waitUntil' | 'waitMs'
> & { now: number }

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
  if (output && fits({ ...rest, output })) rest.output = output
  else if (output) rest.outputLength = output.length
  return rest
}

function addPending(rest: SessionResult, all: readonly PendingCall[]): void {
  rest.pendingCount = all.length
  for (const { callId, name, needs, fingerprint } of all) {
    const pending = [...(rest.pending ?? []), { callId, name, needs, fingerprint }]
    if (!fits({ ...rest, pending })) break
    rest.pending = pending
  }
}
