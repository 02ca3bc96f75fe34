import type { AnswerMeaning } from './lib/answers.js'
import type { OnHalt, Settings } from './lib/settings.js'
import type { ProgressConfig } from './progress-config.js'

export interface CallFact {
  name: string
  /** Equal if and only if name and arguments are equivalent. See fingerprint.ts. */
  fingerprint: string
  /** A short digest, also equal for calls that differ only in blanks at the ends of strings and lines. */
  key: string
  shown: string
  polling: boolean
  readOnly: boolean
}

/** How a sub-agent's run ended, according to its structured result. */
export interface ChildOutcome {
  state: string
  code: string | null
  message: string
}

export interface ResultFact extends CallFact {
  ok: boolean
  /** The kind of the failure. Null if the call succeeded or never ran. */
  errorKind: 'failed' | 'transient' | 'policy_denied' | 'unknown_tool' | null
  /** Whether the call was closed before it ran, because it was refused or the run stopped. */
  refused: boolean
  /** Who refused the call. `other` is a person, a shield or another guard. Null if the call was not refused. */
  refusedBy: 'progress' | 'other' | null
  /** Digest of the result. Empty if no enabled guard compares it. */
  digest: string
  /** A short digest without volatile parts. See outcome-digest.ts. Empty if no enabled guard needs it. */
  outcome: string
  /** Like `outcome`, but also without digits. */
  shape: string
  says?: AnswerMeaning
  /** In characters. */
  size: number
  /** 0 if unknown. */
  durationMs: number
  child?: ChildOutcome
}

/** An observation of a run. Created by `createCallsFact` and `createResultsFact`, so that each value is hashed once. */
export type Fact =
  /** The batch has not run yet. `batch` is its fingerprint, or empty if no enabled guard compares batches. */
  | { type: 'calls'; batch: string; calls: CallFact[] }
  /** The batch ended. `outcome` is the fingerprint of all results, or empty like `batch`. */
  | {
      type: 'results'
      batch: string
      outcome: string
      results: ResultFact[]
      /** Transcript index of the message with the calls. */
      at: number
    }
  | { type: 'text' }

export interface Finding<Reason extends string = string> {
  guard: Reason
  rule?: string
  evidence: string
  action: 'nudge' | 'block' | 'halt'
  /** Guides the model (nudge), is the result of the refused calls (block), or suggests a remedy to the user (halt). */
  message: string
  onHalt?: OnHalt
  /** The prompt for a concluding answer before a pause. Defaults to the shared prompt. */
  lastWords?: string
  /** Fingerprints or keys of the calls to refuse. Absent for the whole batch. */
  fingerprints?: string[]
  /** Number of identical calls that may still run. Defaults to 0. */
  spare?: number
}

export type Verdict<Reason extends string = string> = { action: 'ok' } | Finding<Reason>

/** Pure, with state of limited size. `observe` is called with each fact in order, then `verdict`. Neither throws. */
export interface Rule<State, Told, Reason extends string = string> {
  /** The possible `reason`s for a halt. A guard with several reasons is reset after any of them. */
  reasons: readonly Reason[]
  initial: State
  observe(state: State, fact: Fact, config: Told): State
  verdict(state: State, config: Told): Verdict<Reason>
  /** Restores stored state, or returns null if it is invalid. */
  restore(stored: unknown): State | null
  /** Called when requests omit the messages from `head` up to `from`. Must return the same state if nothing changes. */
  forget?(state: State, head: number, from: number): State
}

/** A rule with its own configuration, listed in the roster under its key. */
export interface Guard<State, Config, Reason extends string = string, Told = Config>
  extends Rule<State, Told, Reason> {
  settings: Settings<Config>
  /** The configuration if the guard is enabled without settings. */
  defaults: Config
  /** Whether the guard is enabled by default. Otherwise, setting its key enables it. */
  isOn?: true
  /** The rules of the progress guard that this guard replaces when it is configured. */
  insteadOf?: readonly (keyof ProgressConfig)[]
}

export const ok: { action: 'ok' } = { action: 'ok' }
