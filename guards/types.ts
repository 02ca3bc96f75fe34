import type { OnHalt } from './config.js'

/** The guards that can stop a run, by the reason that a halt of theirs gives. */
export type GuardName =
  | 'repeated_call'
  | 'repeated_output'
  | 'cycle'
  | 'repeated_failure'
  | 'policy_denied'
  | 'no_progress'
  | 'terminal_delegation'

/** A call that the model asks for, as the guards see it. Made by `callFact`. */
export interface CallFact {
  name: string
  /** See fingerprint.ts: equal exactly when name and arguments mean the same. */
  fingerprint: string
  /** Short, and equal also for calls that differ in blanks at the ends of texts and lines. See `identify`. */
  key: string
  /** The arguments for people, cut. */
  shown: string
  polling: boolean
  readOnly: boolean
}

/** How the run of a sub-agent ended, from its structured result. */
export interface ChildOutcome {
  /** The child's `AgentState`. */
  state: string
  /** The code of its error; null when it had none. */
  code: string | null
  /** The message of its error, or empty. */
  message: string
}

/** How a call ended, as the guards see it. */
export interface ResultFact extends CallFact {
  ok: boolean
  /** Null when it succeeded or never ran. */
  errorKind: 'failed' | 'transient' | 'policy_denied' | 'unknown_tool' | null
  /** It was never carried out: refused, or closed as the run stopped. */
  refused: boolean
  /** Who refused it: the progress guard, or a person, a shield or another guard. Null: nobody did. */
  refusedBy: 'progress' | 'other' | null
  /** Digest of what came back: equal results have equal digests. Empty when no guard that is on compares them. */
  digest: string
  /** The same without what changes by itself, and short: see outcome-digest.ts. Empty when no guard that is on asks. */
  outcome: string
  /** Characters that came back. */
  size: number
  /** How long it ran, in milliseconds; 0 where nobody knows. */
  durationMs: number
  /** Set when the tool is a sub-agent. */
  child?: ChildOutcome
}

/** What happens in a run that guards care about. Made by `callsFact` and `resultsFact`, so that each is hashed once. */
export type Fact =
  /**
   * The model asked for this batch; nothing of it has run. `batch` is the batch's fingerprint; empty when no guard that
   * is on compares batches.
   */
  | { type: 'calls'; batch: string; calls: CallFact[] }
  /** The batch has ended. `outcome` is the fingerprint of all its results; empty as `batch` is. */
  | {
      type: 'results'
      batch: string
      outcome: string
      results: ResultFact[]
      /** Where in the transcript the message is that called. */
      at: number
    }
  /** An answer without calls. */
  | { type: 'text' }

/** What a guard says when it says something. */
export type Finding = {
  guard: GuardName
  /** Which of the guard's rules speaks, where it has several: a key of its configuration. */
  rule?: string
  evidence: string
} & (
  | {
      /** `message` is guidance for the model (nudge) or a sentence for the user that says what to do (halt). */
      action: 'nudge' | 'halt'
      message: string
      /** What the halt does, where the guard's configuration does not say it for all of its rules. */
      onHalt?: OnHalt
      /** Set when the model is asked for last words before the run pauses: what it reads. */
      lastWords?: string
    }
  | {
      /** Refuse calls; `message` is what the model reads as their result. */
      action: 'block'
      message: string
      /** The fingerprints or keys of the calls; null: every call of the batch. */
      fingerprints: string[] | null
      /** How many calls of each kind may run before the others are refused. Default 0. */
      spare?: number
    }
)

export type Verdict = { action: 'ok' } | Finding

/**
 * A guard: pure, its state plain JSON of bounded size. `observe` is told every fact in order; `verdict` is asked
 * after each. None of them throws.
 */
export interface Guard<State, Config> {
  initial: State
  observe(state: State, fact: Fact, config: Config): State
  verdict(state: State, config: Config): Verdict
  /** A state that was stored as JSON; null when it is none of this guard's. */
  restore(stored: unknown): State | null
}

export const ok: Verdict = { action: 'ok' }
