import type { AnswerMeaning } from './lib/answers.js'
import type { OnHalt, Settings } from './lib/settings.js'
import type { ProgressConfig } from './progress-config.js'

/** A call that the model asks for, as the guards see it. Made by `createCallFact`. */
export interface CallFact {
  name: string
  /** See fingerprint.ts: equal exactly when name and arguments mean the same. */
  fingerprint: string
  /** Short, and equal also for calls that differ in blanks at the ends of texts and lines. See `identifyCall`. */
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
  /** Who refused it: the progress guard, or a person, a shield or another guard. Null: it was not refused. */
  refusedBy: 'progress' | 'other' | null
  /** Digest of what came back: equal results have equal digests. Empty when no guard that is on compares them. */
  digest: string
  /** The same without what changes by itself, and short: see outcome-digest.ts. Empty when no guard that is on asks. */
  outcome: string
  /** The same without digits. Empty as `outcome` is. */
  shape: string
  /** The meaning of the result's words for its call: see `readAnswer`. */
  says?: AnswerMeaning
  /** Characters that came back. */
  size: number
  /** How long it ran, in milliseconds; 0 where it is not known. */
  durationMs: number
  /** Set when the tool is a sub-agent. */
  child?: ChildOutcome
}

/**
 * What happens in a run that guards care about. Made by `createCallsFact` and `createResultsFact`, so that each is
 * hashed once.
 */
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
export type Finding<Reason extends string = string> = {
  /** The reason that a halt of it gives. */
  guard: Reason
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
      /**
       * What the model reads when it is asked for last words before the run pauses. Default: a sentence for all guards.
       */
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

export type Verdict<Reason extends string = string> = { action: 'ok' } | Finding<Reason>

/**
 * A rule watches for one thing: pure, with plain JSON of bounded size as its state. `observe` receives every fact in
 * order; `verdict` is called after each. None of them throws.
 */
export interface Rule<State, Told, Reason extends string = string> {
  /** What a run's `reason` is when it halts; what halts for several reasons begins anew after each. */
  reasons: readonly Reason[]
  initial: State
  observe(state: State, fact: Fact, config: Told): State
  verdict(state: State, config: Told): Verdict<Reason>
  /** A state that was stored as JSON; null when it is none of this guard's. */
  restore(stored: unknown): State | null
  /** Requests leave out the messages from `head` up to `from`. The state itself where that changes nothing. */
  forget?(state: State, head: number, from: number): State
}

/** A rule with a configuration of its own: its place is in the roster, under the key of that. */
export interface Guard<State, Config, Reason extends string = string, Told = Config>
  extends Rule<State, Told, Reason> {
  /** What each key of its configuration may be. */
  settings: Settings<Config>
  /** Its configuration when it is on and nothing else is said. */
  defaults: Config
  /** On unless it is switched off. Default: off unless a key of it is given. */
  isOn?: true
  /** What the progress guard watches for in its place: naming this guard takes it out of its hands. */
  insteadOf?: readonly (keyof ProgressConfig)[]
}

export const ok: { action: 'ok' } = { action: 'ok' }
