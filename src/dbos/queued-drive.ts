import { optionError } from '../core/base/errors.js'
import type { SessionAnswer } from '../core/drive/drive-answers.js'
import { checkDriveOptions } from '../core/drive/drive-options.js'
import type { SessionResult } from '../core/drive/drive-rest.js'

/** A request to run a session, including its answers: at most 1,000 bytes of JSON. */
export interface DbosEnqueueRequest {
  session: string
  /** Input of the run. Defaults to the result of `loadInput`, which may be longer. */
  input?: string
  /** The turn to run; see `runSession`. Defaults to the first. */
  turn?: number
  agent?: string
  /** The priority, of which 0 is the highest. Defaults to 10 for new sessions and 5 for started ones. */
  priority?: number
}

export interface QueuedDrive extends DbosEnqueueRequest {
  answers?: readonly SessionAnswer[]
  at?: number
  /** The id of the first attempt, and the number of attempts. */
  base: string
  attempt: number
  begins?: boolean
  refused?: number
}

/** A request that another process must run, or this process after a delay. */
export interface RefusedDrive {
  /** Delay in milliseconds. */
  later: number
  refused: number
}

/**
 * Validates a request that enters or leaves the queue, because other programs can write to the queue.
 * @throws {UsageError} `invalid_session`, `invalid_option`, naming the key
 */
export function checkDrive(drive: unknown): void {
  if (typeof drive !== 'object' || drive === null)
    throw optionError('enqueue takes { session, input, … }.', 'session')
  const { session, turn, agent, answers, at, input, priority } = drive as Partial<QueuedDrive>
  checkDriveOptions({ session, turn, agent, answers, at })
  if (input !== undefined && typeof input !== 'string')
    throw optionError('The input of enqueue must be a string, because DBOS stores it.', 'input')
  if (priority !== undefined && !(Number.isSafeInteger(priority) && priority >= 0))
    throw optionError('The priority of enqueue must be a non-negative integer.', 'priority')
}

export const waitPrefix = 'wait:'

export function createWaitId(session: string, head: number): string {
  return `${waitPrefix}${session}:${head}:`
}

/** The single request after a wait, whatever arrives in the meantime. Answers are queued separately. */
export function createDriveAfterWait(queued: QueuedDrive, rest: SessionResult): QueuedDrive {
  const next = toResumingDrive(queued, rest)
  const base = next.answers ? queued.base : `${createWaitId(rest.session, rest.head)}${rest.waitUntil}`
  const attempt = base === queued.base ? queued.attempt + 1 : 0
  return { ...next, base, attempt }
}

/** The request that wakes a sleeping session: one for each sleep, and a second one if that came too early. */
export function createDriveAfterSleep(queued: QueuedDrive, rest: SessionResult): QueuedDrive {
  const base = `sleep:${rest.session}:${rest.head}:${rest.wakeAt}`
  return { session: rest.session, base, attempt: base === queued.base ? queued.attempt + 1 : 0 }
}

/** Does not start a deleted session again, and omits answers that the run has read. */
export function toResumingDrive(
  { input: _input, begins: _begins, refused: _refused, answers, ...queued }: QueuedDrive,
  { undelivered: unsaid }: Pick<SessionResult, 'undelivered'>,
): QueuedDrive {
  return { ...queued, ...(unsaid && answers && { answers }) }
}

/** Increasing delay before the next attempt of a refused request, in milliseconds. */
export function getRetryDelay(refused: number): number {
  return Math.min(30_000, 500 * 2 ** Math.min(refused, 10))
}
