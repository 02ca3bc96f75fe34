import { StatewrightError } from '../../core/base/errors.js'

/**
 * What is otherwise than it was recorded.
 *
 * - `prompt`: the instructions · `tools`: a tool is gone, new, or looks otherwise to the model · `settings`: sampling,
 *   toolChoice, extraBody · `output`: the schema of answers
 * - `arguments`: what the model gave a tool fits its schema no more, or does now · `result`: a live tool returned something
 *   else · `approval`: who has to act on a call before it runs
 * - `message`: the transcript has something else in it · `guidance`: what rides on a request besides
 * - `state`: the run stands elsewhere, because of how the agent is made now · `chart`: because of this version of Statewright
 */
export type DifferenceKind =
  | 'prompt'
  | 'tools'
  | 'settings'
  | 'output'
  | 'arguments'
  | 'result'
  | 'approval'
  | 'message'
  | 'guidance'
  | 'state'
  | 'chart'

/** One difference between a recording and how the agent plays it now. */
export interface SessionDifference {
  by: DifferenceKind
  /** Which run of the session, from 1; null for what is true of all. */
  run: number | null
  /** Which step of it, from 1; null before the first. */
  step: number | null
  /** The number of the record at which it showed. */
  record: number | null
  /** The sub-agent in which it showed, by the names of the tools that lead to it; empty for the session itself. */
  path: readonly string[]
  /** The tool, call or setting that it is about. */
  subject: string | null
  /** How it was, and how it is now, in words. */
  recorded: string
  now: string
  /** All of that, as a person reads it; it may have several lines. */
  message: string
}

/**
 * - `session_differs`: the session does not play as it was recorded; `differences` says where
 * - `invalid_recording`, `newer_recording`, `damaged_recording`: what was given cannot be played
 * - `not_an_agent`, `invalid_option`: nor on this, nor like that
 */
export type ReplayErrorCode =
  | 'session_differs'
  | 'invalid_recording'
  | 'newer_recording'
  | 'damaged_recording'
  | 'not_an_agent'
  | 'invalid_option'

/**
 * A session that does not play as it was recorded, or a recording that cannot be played.
 *
 * @example
 * try {
 *   await replaySession(agent, recording)
 * } catch (error) {
 *   if (error instanceof ReplayError) for (const { by, message } of error.differences) console.log(by, message)
 * }
 */
export class ReplayError extends StatewrightError {
  override readonly name = 'ReplayError'
  declare readonly code: ReplayErrorCode
  /** In the order in which they showed; empty for a recording that cannot be played. */
  readonly differences: readonly SessionDifference[]

  constructor(
    code: ReplayErrorCode,
    message: string,
    subject?: string,
    { differences = [], ...options }: ErrorOptions & { differences?: readonly SessionDifference[] } = {},
  ) {
    super(code, message, subject, options)
    this.differences = differences
  }
}
