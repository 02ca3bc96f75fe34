import type { OnHalt } from '../../guards/lib/settings.js'
import type { UserStates } from '../../guards/user-state.js'

/** What one of the user's own guards says about a batch. */
export interface UserFinding {
  action: 'nudge' | 'block' | 'halt'
  /** The guard's name. */
  guard: string
  /** What was seen, at most 600 characters; it names the guard. */
  evidence: string
  /** For the model (nudge, block) or for people (halt). */
  message: string
  onHalt: OnHalt
  /** The calls that a block refuses; null: every open call of the batch. */
  callIds: string[] | null
}

/** The answer of all the user's guards: what `consultGuards` resolves with. Plain JSON. */
export interface UserGuardsOutput {
  /** What the guards remember from now on; those that remember nothing are left out. */
  states: UserStates
  /** The weightiest first. */
  findings: UserFinding[]
  /** Guards that failed, where that is to be ignored: a sentence each. */
  warnings: string[]
  /** `stopWhen` ends the run with these results. Absent: it does not. */
  stops?: true
  /** Why the result that is the answer does not fit the output schema. Absent: it does, or nothing has to. */
  outputProblem?: string
}
