/** A call that the model asks for, as the guards see it. */
export interface CallFact {
  name: string
  /** See fingerprint.ts: equal exactly when name and arguments mean the same. */
  fingerprint: string
  /** The arguments for people, cut. */
  shown: string
  polling: boolean
  readOnly: boolean
}

/** How a call ended, as the guards see it. */
export interface ResultFact extends CallFact {
  ok: boolean
  /** Null when it succeeded or never ran. */
  errorKind: 'failed' | 'transient' | 'policy_denied' | 'unknown_tool' | null
  /** Refused by a guard or a person, or closed unexecuted: feeds no counter. */
  refused: boolean
  /** Digest of what came back: equal results have equal digests. */
  digest: string
}

/** What happens in a run that guards care about. */
export type Fact =
  /** The model asked for this batch; nothing of it has run. */
  | { type: 'calls'; calls: CallFact[] }
  /** The batch has ended. */
  | { type: 'results'; results: ResultFact[] }
  /** An answer without calls. */
  | { type: 'text' }

export type Verdict =
  | { action: 'ok' }
  /** `message` is guidance for the model (nudge) or a sentence for the user that says what to do (halt). */
  | { action: 'nudge' | 'halt'; evidence: string; message: string }
  /** Refuse the calls with these fingerprints; `message` is what the model reads as their result. */
  | { action: 'block'; evidence: string; message: string; fingerprints: string[] }

/**
 * A guard: pure, its state plain JSON. `observe` is told every fact in order; `verdict` is asked after each.
 * Both never throw.
 */
export interface Guard<State, Config> {
  initial: State
  observe(state: State, fact: Fact, config: Config): State
  verdict(state: State, config: Config): Verdict
}

export const ok: Verdict = { action: 'ok' }
