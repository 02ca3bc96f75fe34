import type { ShieldAction } from './shield.js'

/** What one shield said. */
export interface ShieldFinding {
  shield: string
  action: ShieldAction
  message: string | null
  durationMs: number
}

/** What all shields of a point said of a content: plain JSON. */
export interface ShieldOutcome {
  /** The gravest of all actions. */
  action: ShieldAction
  /** The messages that go with that action; always there when it is `block`. */
  message: string | null
  /** The content as it may go on. Nothing of it may, when the action is `block`. */
  content: string
  /** One a shield, in list order. */
  findings: ShieldFinding[]
}
