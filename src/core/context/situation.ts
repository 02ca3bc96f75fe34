import type { Fit } from '../../../machines/agent/fit.js'
import type { Message } from '../../../machines/agent/messages.js'

/** A request that has outgrown the window, as a strategy sees it. */
export interface Situation {
  readonly messages: readonly Message[]
  /** Tokens of each message. */
  readonly sizes: readonly number[]
  /** Tokens of what is no message of the transcript: instructions, tools, nudges. */
  readonly fixed: number
  /** Tokens that a request may have. */
  readonly window: number
  /** The fit that the request has outgrown. What it left out never comes back. */
  readonly previous: Fit | null
  /** Tokens of a note, as a message. */
  readonly noteSize: (note: string) => number
}

/** How a transcript is shortened: a fit that makes the request as long as the window at most, or null: none does. */
export type Strategy = (situation: Situation) => Fit | null
