import type { Message } from '../../../machines/agent/messages.js'
import type { Usage } from '../../../machines/agent/usage.js'
import type { Sampling, ToolChoice } from '../models/provider.js'
import type { HistoryMessage } from '../sessions/input-history.js'
import type { GuardedResult } from '../user-guards/guard.js'

/** What `prepareStep` is asked about: the request that comes next. */
export interface StepQuestion {
  /** The number of the step: 1 is the first after a user message. */
  readonly step: number
  /** The transcript; frozen. */
  readonly messages: readonly Message[]
  /** What the run has used so far. */
  readonly usage: Usage
  /** The app's own object, as it was handed to the run. */
  readonly context: unknown
  /** How the calls of the last response have ended, in call order; empty at the first step. */
  readonly lastResults: readonly StepResult[]
}

/** How a call has ended. */
export type StepResult = Pick<GuardedResult, 'id' | 'name' | 'arguments' | 'status' | 'content'>

/** What one request is made of, in place of what the agent has. What is left out stays. */
export interface StepSettings {
  /** A name in `models` of the agent. */
  model?: string | undefined
  /** The names of the tools that the model may call; any other call is refused. `[]`: none. */
  tools?: readonly string[] | undefined
  toolChoice?: ToolChoice | undefined
  /** In place of the agent's own. */
  instructions?: string | undefined
  /** Key by key over the agent's own. */
  sampling?: Sampling | undefined
  /** What the request has in place of the transcript, which stays as it is. */
  messages?: readonly (Message | HistoryMessage)[] | undefined
}

/**
 * Decides what the next request is made of: asked once a step. What it returns is in the log, so that a resume, a replay or
 * a fork does the same without asking it again.
 *
 * @example
 * const prepareStep: PrepareStep = ({ step }) => (step > 3 ? { model: 'small', tools: ['search'] } : {})
 * createAgent({ model, models: { small: openaiChat({ model: 'gpt-5-nano' }) }, tools, prepareStep })
 */
export type PrepareStep = (
  question: StepQuestion,
) => StepSettings | undefined | Promise<StepSettings | undefined>

/** Instructions that are written anew for each step. */
export type WriteInstructions = (context: unknown) => string | Promise<string>
