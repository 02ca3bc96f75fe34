import { UsageError } from '../core/base/errors.js'
import type { SessionAnswer } from '../core/drive/drive-answers.js'
import { checkDriveOptions } from '../core/drive/drive-options.js'
import type { SessionResult } from '../core/drive/drive-rest.js'

/** A request to run a session: at most 1,000 bytes of JSON, its answers included. */
export interface DbosEnqueueRequest {
  session: string
  /** What its run begins with. Left out: what `loadInput` returns, which may be longer. */
  input?: string
  /** Which run of the session; see `runSession`. Default: the first. */
  turn?: number
  agent?: string
  /** 0 is first. Default: 10, and 5 for what has begun. */
  priority?: number
}

/** A request in the queue, with what was added to it. */
export interface QueuedDrive extends DbosEnqueueRequest {
  answers?: readonly SessionAnswer[]
  at?: number
  /** The id of the first attempt, and how many there have been. */
  base: string
  attempt: number
  /** It begins a run with what `loadInput` returns. */
  begins?: boolean
  /** How often it was refused in a row. */
  refused?: number
}

/** A request that another process has to carry out, or this one later. */
export interface RefusedDrive {
  /** In milliseconds. */
  later: number
  refused: number
}

/**
 * Checks a drive that goes into the queue or comes out of it: other programs can write to the queue.
 * @throws {UsageError} `invalid_session`, `invalid_option`, naming the key
 */
export function checkDrive(given: unknown): void {
  if (typeof given !== 'object' || given === null)
    throw new UsageError('invalid_option', 'enqueue takes { session, input, … }.', 'session')
  const { session, turn, agent, answers, at, input, priority } = given as Partial<QueuedDrive>
  checkDriveOptions({ session, turn, agent, answers, at })
  if (input !== undefined && typeof input !== 'string')
    throw new UsageError('invalid_option', 'enqueue takes a text as input: DBOS keeps it.', 'input')
  if (priority !== undefined && !(Number.isSafeInteger(priority) && priority >= 0))
    throw new UsageError('invalid_option', 'enqueue takes a whole number from 0 as priority.', 'priority')
}

export const waitPrefix = 'wait:'

/** How the id of the workflow begins that runs when the wait after this record of a session is over. */
export function createWaitId(session: string, head: number): string {
  return `${waitPrefix}${session}:${head}:`
}

/** The request after a wait: one, however many come for the session meanwhile. A request with answers is queued by itself. */
export function createDriveAfterWait(queued: QueuedDrive, rest: SessionResult): QueuedDrive {
  const next = toResumingDrive(queued, rest)
  const base = next.answers ? queued.base : `${createWaitId(rest.session, rest.head)}${rest.waitUntil}`
  const attempt = base === queued.base ? queued.attempt + 1 : 0
  return { ...next, base, attempt }
}

/** The request that wakes a session which sleeps: one for each sleep, and another one where it came too early. */
export function createDriveAfterSleep(queued: QueuedDrive, rest: SessionResult): QueuedDrive {
  const base = `sleep:${rest.session}:${rest.head}:${rest.wakeAt}`
  return { session: rest.session, base, attempt: base === queued.base ? queued.attempt + 1 : 0 }
}

/**
 * The request that continues a session which has begun: when the session is gone by then, it does not begin anew. Answers that the
 * run has read are left out.
 */
export function toResumingDrive(
  { input: _input, begins: _begins, refused: _refused, answers, ...queued }: QueuedDrive,
  { undelivered: unsaid }: Pick<SessionResult, 'undelivered'>,
): QueuedDrive {
  return { ...queued, ...(unsaid && answers && { answers }) }
}

/** How long a refused request waits before its next attempt, in milliseconds: longer each time. */
export function getRetryDelay(refused: number): number {
  return Math.min(30_000, 500 * 2 ** Math.min(refused, 10))
}
