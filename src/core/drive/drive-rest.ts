import type { AgentContext } from '../../../machines/agent/context.js'
import type { AgentState, PendingCall, Reason, RunFailure } from '../../../machines/agent/run-result.js'
import { toRunResult } from '../../../machines/agent/to-result.js'
import { findSleepLeft } from './wake-sleepers.js'
/**
 * The state in which `runSession` leaves a session: plain JSON of at most 1,000 bytes, because engines store everything that crosses
 * their boundary. The store has the rest: `agent.replay(session)` reads it.
 *
 * @example
 * const payer = createAgent({ model, store: memoryStore() })
 * const rest: SessionResult = await runSession(payer, { session: 'ann', input: 'Pay the invoices.' })
 * if (rest.state === 'WAITING_FOR_INPUT') console.log(rest.pending, rest.head)
 */
export interface SessionResult {
  session: string
  /** Which run of the session: 1, 2, … */
  turn: number
  /** The state of that run. It is at work only when the call was stopped before the next rest. */
  state: AgentState
  reason: Reason | null
  /** The last record of the log. Answers that carry it (`at`) count only while nothing else has come. */
  head: number
  /** The call was stopped, by its signal or by a long wait: call `runSession` again. */
  stopped?: true
  /** The call was stopped before the run read its `answers`: pass them again. */
  undelivered?: true
  /** Nothing can be done before then, in milliseconds since the epoch: the model's provider has asked for a long wait. */
  waitUntil?: number
  /** How much of that wait was left when the call settled, in milliseconds: valid on a machine with another clock, too. */
  waitMs?: number
  /** It sleeps, and goes on then, in milliseconds since the epoch: call `runSession` again. */
  wakeAt?: number
  /** How much of the sleep was left when the call settled, in milliseconds: valid on a machine with another clock, too. */
  wakeMs?: number
  /** The answer, if it is short. */
  output?: string
  /** Characters of the answer that was too long: it is in `(await agent.replay(session)).run.output`. */
  outputLength?: number
  /** What it waits for, as far as there is room: `pendingCount` says how many there are. */
  pending?: Pick<PendingCall, 'callId' | 'name' | 'needs' | 'fingerprint'>[]
  pendingCount?: number
  /** Why it ended, in ERROR and where a limit or a shield has ended it. Its message may be cut. */
  error?: RunFailure
  /** Of the session. */
  totalTokens: number
  /** Of the session, in USD; null where it is not known. */
  cost: number | null
}

/** Bytes of JSON. */
const maxRestBytes = 1000
const countJsonBytes = (value: unknown): number => new TextEncoder().encode(JSON.stringify(value)).length

/** What is known besides the run itself. */
export type RestParts = Pick<
  SessionResult,
  'turn' | 'head' | 'stopped' | 'undelivered' | 'waitUntil' | 'waitMs'
> & { now: number }

/** How a run stands, in few words. */
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
  if (error) rest.error = { ...error, code: cutText(error.code, 60), message: cutText(error.message, 200) }
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

function cutText(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text
}
