import type { AnswerMeaning } from './lib/answers.js'
import type { OnHalt, Settings } from './lib/settings.js'
import type { ProgressConfig } from './progress-config.js'

/** A call as guards see it, from `createCallFact`. */
export interface CallFact {
  name: string
  /** Equal exactly if name and arguments are equivalent; see fingerprint.ts. */
  fingerprint: string
  /** Short. Also equal for calls that differ only in blanks at the ends of strings and lines. See `identifyCall`. */
  key: string
  /** Shortened arguments for people. */
  shown: string
  polling: boolean
  readOnly: boolean
}

/** The end of a sub-agent's run, from its structured result. */
export interface ChildOutcome {
  /** The child's `AgentState`. */
  state: string
  /** Its error code, or null. */
  code: string | null
  /** Its error message; may be empty. */
  message: string
}

/** A result as guards see it. */
export interface ResultFact extends CallFact {
  ok: boolean
  /** Null if it succeeded or never ran. */
  errorKind: 'failed' | 'transient' | 'policy_denied' | 'unknown_tool' | null
  /** It never ran: refused, or closed when the run stopped. */
  refused: boolean
  /** Who refused it. `other` is a person, a shield or another guard. Null if it was not refused. */
  refusedBy: 'progress' | 'other' | null
  /** Digest of the result. Empty if no enabled guard compares it. */
  digest: string
  /** Short digest without volatile parts; see outcome-digest.ts. Empty if no enabled guard needs it. */
  outcome: string
  /** The same without digits. Empty like `outcome`. */
  shape: string
  /** The meaning of the result for its call; see `readAnswer`. */
  says?: AnswerMeaning
  /** Length of the result in characters. */
  size: number
  /** Duration in milliseconds; 0 if unknown. */
  durationMs: number
  /** Set for a sub-agent. */
  child?: ChildOutcome
}

/** An observation of a run, from `createCallsFact` and `createResultsFact`, so that each is hashed once. */
export type Fact =
  /**
   * The model asked for a batch that has not run yet. `batch` is its fingerprint, empty if no enabled guard compares
   * batches.
   */
  | { type: 'calls'; batch: string; calls: CallFact[] }
  /** The batch ended. `outcome` is the fingerprint of all results, empty like `batch`. */
  | {
      type: 'results'
      batch: string
      outcome: string
      results: ResultFact[]
      /** Transcript index of the message that made the calls. */
      at: number
    }
  /** An answer without calls. */
  | { type: 'text' }

/** A guard's finding. */
export type Finding<Reason extends string = string> = {
  /** The reason of a halt. */
  guard: Reason
  /** The rule that applied, a key of the guard's configuration. */
  rule?: string
  evidence: string
} & (
  | {
      /** `message` guides the model (nudge) or names a remedy for the user (halt). */
      action: 'nudge' | 'halt'
      message: string
      /** How to halt, if it depends on the rule. */
      onHalt?: OnHalt
      /** The request for last words before a pause. Default: the shared prompt. */
      lastWords?: string
    }
  | {
      /** Refuses calls; `message` is their result for the model. */
      action: 'block'
      message: string
      /** Fingerprints or keys of the calls, or null for the whole batch. */
      fingerprints: string[] | null
      /** Number of identical calls that may still run. Default 0. */
      spare?: number
    }
)

export type Verdict<Reason extends string = string> = { action: 'ok' } | Finding<Reason>

/**
 * A rule for one pattern. It is pure, and its state is plain JSON of bounded size. `observe` receives each fact in
 * order, then `verdict` is called. Neither throws.
 */
export interface Rule<State, Told, Reason extends string = string> {
  /** The `reason` of a halted run. A guard with several reasons resets after each. */
  reasons: readonly Reason[]
  initial: State
  observe(state: State, fact: Fact, config: Told): State
  verdict(state: State, config: Told): Verdict<Reason>
  /** Restores stored state; null if it is invalid. */
  restore(stored: unknown): State | null
  /** Requests omit the messages from `head` up to `from`. Returns the same state if nothing changes. */
  forget?(state: State, head: number, from: number): State
}

/** A rule with its own configuration, listed in the roster under its key. */
export interface Guard<State, Config, Reason extends string = string, Told = Config>
  extends Rule<State, Told, Reason> {
  /** The type of each configuration key. */
  settings: Settings<Config>
  /** The configuration of a guard that is enabled without settings. */
  defaults: Config
  /** Enabled by default. Otherwise setting a key enables it. */
  isOn?: true
  /** The rules of the progress guard that it replaces when configured. */
  insteadOf?: readonly (keyof ProgressConfig)[]
}

export const ok: { action: 'ok' } = { action: 'ok' }
