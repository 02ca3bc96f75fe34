import { UsageError } from '../base/errors.js'
import { expectKnownOptions } from '../config/known-options.js'
import type { RunInput } from '../sessions/history.js'
import { checkSessionId } from '../sessions/store/session-id.js'
import { checkAnswers, type SessionAnswer } from './answers.js'

/** What a drive is given. */
export interface RunSessionOptions {
  /** The id of the session. */
  session: string
  /**
   * What its run begins with, if it has not begun; or how to get it, asked only then: an engine that keeps what it is
   * given should be given an id.
   */
  input?: RunInput | (() => RunInput | Promise<RunInput>)
  /** Which run of the session `input` begins: 1, 2, … Default: the first, or whichever is the latest. */
  turn?: number
  /**
   * What is said to the run where it rests. An answer to a call has its `fingerprint`, or comes with `at`. What nothing
   * waits for any more is passed over.
   */
  answers?: readonly SessionAnswer[]
  /** The `head` of the rest that `answers` are for: once anything else has come, they are passed over. */
  at?: number
  /** Of `defineAgents`: the agent that begins the session. Default: the only one, or the one that it had before. */
  agent?: string
  /** Stops the drive where another one can go on; it does not cancel the run. */
  signal?: AbortSignal
  /**
   * Called at once, and every 10 seconds until the drive settles. One that throws, or rejects, stops the drive as `signal`
   * does, and the drive rejects with what it threw.
   */
  heartbeat?: () => unknown
  /**
   * A wait before a retry that is longer than this is not sat through, in milliseconds: the drive settles as `stopped`,
   * with `waitUntil`. Default: every wait is.
   */
  maxRetryWaitMs?: number
  /** The app's own object, handed to `execute`. */
  context?: unknown
}

const known = [
  'session',
  'input',
  'turn',
  'answers',
  'at',
  'agent',
  'signal',
  'heartbeat',
  'maxRetryWaitMs',
  'context',
] as const satisfies (keyof RunSessionOptions)[]

/** @throws {UsageError} `invalid_option`, naming the key; `invalid_input`, `unbound_answer` for answers */
export function checkedDriveOptions(options: unknown): RunSessionOptions {
  if (typeof options !== 'object' || options === null) throw wrong('options', 'takes { session, input, … }')
  const given = options as RunSessionOptions
  expectKnownOptions('runSession', given, known)
  const { session, turn, answers, at, agent, signal, heartbeat, maxRetryWaitMs } = given
  checkSessionId(session)
  if (turn !== undefined && !(Number.isSafeInteger(turn) && turn >= 1))
    throw wrong('turn', 'counts turns from 1')
  if (at !== undefined && !Number.isSafeInteger(at)) throw wrong('at', 'takes the head of a rest as at')
  if (answers !== undefined && !Array.isArray(answers)) throw wrong('answers', 'takes a list of answers')
  if (answers) checkAnswers(answers, at)
  if (agent !== undefined && typeof agent !== 'string') throw wrong('agent', 'takes the name of an agent')
  if (signal !== undefined && typeof signal?.addEventListener !== 'function')
    throw wrong('signal', 'takes an AbortSignal as signal')
  if (heartbeat !== undefined && typeof heartbeat !== 'function')
    throw wrong('heartbeat', 'takes a function as heartbeat')
  if (maxRetryWaitMs !== undefined && !(typeof maxRetryWaitMs === 'number' && maxRetryWaitMs >= 0))
    throw wrong('maxRetryWaitMs', 'takes milliseconds from 0 as maxRetryWaitMs')
  return given
}

function wrong(key: string, what: string): UsageError {
  return new UsageError('invalid_option', `runSession ${what}.`, key)
}
