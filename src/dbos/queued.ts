import { UsageError } from '../core/base/errors.js'
import type { SessionAnswer } from '../core/drive/answers.js'
import { checkedDriveOptions } from '../core/drive/options.js'
import type { SessionResult } from '../core/drive/rest.js'

/** One drive, as it stands in the queue: at most 1,000 bytes with whatever it says. */
export interface DbosEnqueueRequest {
  session: string
  /** What its run begins with. A longer one stays with you: pass its id, and look it up in a tool, or in `memory`. */
  input?: string
  /** Which run of the session; see `runSession`. Default: the first. */
  turn?: number
  agent?: string
  /** 0 is first. Default: 10, and 5 for what has begun. */
  priority?: number
}

/** A drive in the queue, with what was added to it. */
export interface Queued extends DbosEnqueueRequest {
  answers?: readonly SessionAnswer[]
  at?: number
  /** The id of the first attempt, and how many there have been. */
  base: string
  attempt: number
  /** How often it was refused in a row. */
  refused?: number
}

/** A drive that somebody else has to make, or this one later. */
export interface Refused {
  /** In milliseconds. */
  later: number
  refused: number
}

/**
 * What comes into the queue, or out of it: anybody may have put it there.
 * @throws {UsageError} `invalid_session`, `invalid_option`, naming the key
 */
export function checkedDrive(given: unknown): void {
  if (typeof given !== 'object' || given === null)
    throw new UsageError('invalid_option', 'enqueue takes { session, input, … }.', 'session')
  const { session, turn, agent, answers, at, input, priority } = given as Partial<Queued>
  checkedDriveOptions({ session, turn, agent, answers, at })
  if (input !== undefined && typeof input !== 'string')
    throw new UsageError('invalid_option', 'enqueue takes a text as input: DBOS keeps it.', 'input')
  if (priority !== undefined && !(Number.isSafeInteger(priority) && priority >= 0))
    throw new UsageError('invalid_option', 'enqueue takes a whole number from 0 as priority.', 'priority')
}

export const waitPrefix = 'wait:'

/** How the id of the drive begins that comes when the wait is over after this record of a session. */
export function waitId(session: string, head: number): string {
  return `${waitPrefix}${session}:${head}:`
}

/** The drive after a wait: one, however many come to the session meanwhile. One that says something comes by itself. */
export function afterWait(queued: Queued, rest: SessionResult): Queued {
  const next = begun(queued, rest)
  const base = next.answers ? queued.base : `${waitId(rest.session, rest.head)}${rest.waitUntil}`
  const attempt = base === queued.base ? queued.attempt + 1 : 0
  return { ...next, base, attempt }
}

/**
 * A drive of what has begun: should the session be gone by then, it does not begin anew. What its run has heard is not said
 * again.
 */
export function begun(
  { input: _input, refused: _refused, answers, ...queued }: Queued,
  { undelivered: unsaid }: Pick<SessionResult, 'undelivered'>,
): Queued {
  return { ...queued, ...(unsaid && answers && { answers }) }
}

/** A drive that was refused comes again soon, and ever later. */
export function pauseAfter(refused: number): number {
  return Math.min(30_000, 500 * 2 ** Math.min(refused, 10))
}
