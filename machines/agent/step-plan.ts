import type { JsonObject } from './json.js'
import type { Message } from './messages.js'

/** Settings for one step, as plain JSON in the log. Absent keys use the agent's settings. */
export interface StepPlan {
  /** The step that the plan applies to. 1 is the first step after a user message. */
  step: number
  /** A key of the agent's `models`. */
  model?: string
  /** The tools that the model may call. */
  tools?: readonly string[]
  toolChoice?: 'auto' | 'none' | 'required' | { name: string }
  instructions?: string
  sampling?: JsonObject
  /** Replaces the transcript in the request. A string is the id of a message in the transcript. */
  messages?: readonly (string | Message)[]
}

export type StepSetting = Exclude<keyof StepPlan, 'step'>

export function findNextPlan({ plan, steps }: { plan: StepPlan | null; steps: number }): StepPlan | null {
  return plan?.step === steps + 1 ? plan : null
}
