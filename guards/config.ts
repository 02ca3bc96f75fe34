/** What a halt does: end the run in ERROR, or keep it in PAUSED, from where `resume()` resets that guard alone. */
export type OnHalt = 'error' | 'pause'

/**
 * What a guard does with a call that repeats: halt the run, or refuse the call with a result that says so and halt at
 * its second refusal.
 */
export type OnRepeat = 'halt' | 'block'

/** Identical consecutive batches. The number of batches that execute is `guardrails.maxRepeatedToolSteps`. */
export interface RepeatedCallConfig {
  /**
   * `next`: the batch after the last allowed one is not executed. `reached`: halt right after the last allowed one.
   * With `onRepeat: 'block'` the batch after the last allowed one is refused either way.
   */
  haltAt: 'next' | 'reached'
  /** `unchanged` counts batches that succeed with unchanged results; `all` is blind to results. */
  counts: 'unchanged' | 'all'
  onRepeat: OnRepeat
  onHalt: OnHalt
}

/** Consecutive rounds of successful calls with the same results, whatever the arguments. */
export interface RepeatedOutputConfig {
  /** The round that trips. */
  rounds: number
  /** Halt even when a tool of the round is not readOnly (else that is a nudge). */
  strict: boolean
  onHalt: OnHalt
}

/** Batches in a period of 2 to `maxPeriod` with stable results. */
export interface CycleConfig {
  /** At most 8. */
  maxPeriod: number
  /** Whole periods seen before the nudge. */
  nudgeAt: number
  /** Whole periods seen before the halt. */
  haltAt: number
  onHalt: OnHalt
}

/**
 * Failures in a row, by kind, counted once a batch. Each number is the failure that halts; a nudge comes one before.
 * `identical` ones agree in tool, arguments and error class.
 */
export interface FailingConfig {
  identical: number
  any: number
  transientIdentical: number
  transientAny: number
  /** Identical ones, too. */
  policyDenied: number
  onRepeat: OnRepeat
  onHalt: OnHalt
}

export interface TerminalDelegationConfig {
  onHalt: OnHalt
}

/** Answers with neither text nor calls. */
export interface EmptyAnswerConfig {
  /** Re-prompts after a failed tool. */
  reprompts: number
  /** Plain retries otherwise. */
  retries: number
}

/** What the guards that watch tool calls need to know. `null` is off. The `guardrails` of an `AgentConfig` is one. */
export interface GuardrailsConfig {
  /** Identical consecutive batches that execute. */
  maxRepeatedToolSteps: number
  repeatedCall: RepeatedCallConfig | null
  repeatedOutput: RepeatedOutputConfig | null
  cycle: CycleConfig | null
  failing: FailingConfig | null
  terminalDelegation: TerminalDelegationConfig | null
}
