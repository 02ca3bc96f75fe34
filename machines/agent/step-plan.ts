import type { JsonObject } from './json.js'
import type { Message } from './messages.js'

/**
 * What the agent's author has decided about one step: plain JSON, kept in the log. What is absent is as the agent has it.
 */
export interface StepPlan {
  /** The step that it is for: 1 is the first after a user message. */
  step: number
  /** A name in `models` of the agent. */
  model?: string
  /** The only tools that the model may call. */
  tools?: readonly string[]
  toolChoice?: 'auto' | 'none' | 'required' | { name: string }
  instructions?: string
  sampling?: JsonObject
  /** What the request has in place of the transcript. A text is the id of a message of the transcript. */
  messages?: readonly (string | Message)[]
}

/** What a plan can decide. */
export type StepSetting = Exclude<keyof StepPlan, 'step'>

/** The plan of the step that comes next, or is being asked; null: it has none. */
export function findNextPlan({ plan, steps }: { plan: StepPlan | null; steps: number }): StepPlan | null {
  return plan?.step === steps + 1 ? plan : null
}
