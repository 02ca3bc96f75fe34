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
  /** What becomes of the repeated call. */
  onRepeat: OnRepeat
  /** What a halt does. */
  onHalt: OnHalt
}

/** Consecutive rounds of successful calls with the same results, whatever the arguments. */
export interface RepeatedOutputConfig {
  /** The round that trips. */
  rounds: number
  /** Halt even when a tool of the round is not readOnly (else that is a nudge). */
  strict: boolean
  /** What a halt does. */
  onHalt: OnHalt
}

/** Batches in a period of 2 to `maxPeriod` with stable results. */
export interface CycleConfig {
  /** The longest round that is recognised, in batches: 2 to 8. */
  maxPeriod: number
  /** Whole periods seen before the nudge. */
  nudgeAt: number
  /** Whole periods seen before the halt. */
  haltAt: number
  /** What a halt does. */
  onHalt: OnHalt
}

/**
 * Failures in a row, by kind, counted once a batch. Each number is the failure that halts; a nudge comes one before.
 * `identical` ones agree in tool, arguments and error class.
 */
export interface FailingConfig {
  /** Identical failures that pass by no waiting. */
  identical: number
  /** Failures of any calls in a row; transient ones, and those of tools that do not exist, do not count. */
  any: number
  /** Identical transient failures. */
  transientIdentical: number
  /** Transient failures of any calls in a row. */
  transientAny: number
  /** Identical refusals by a policy (`ToolError('policy_denied', …)`). */
  policyDenied: number
  /** What becomes of the call that fails again. */
  onRepeat: OnRepeat
  /** What a halt does. */
  onHalt: OnHalt
}

/** A sub-agent whose account is exhausted or whose model is misconfigured. */
export interface TerminalDelegationConfig {
  /** What a halt does. */
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
  /** The same batch of calls again and again. */
  repeatedCall: RepeatedCallConfig | null
  /** The same results again and again, whatever is called. */
  repeatedOutput: RepeatedOutputConfig | null
  /** Batches that go round: A, B, A, B, … */
  cycle: CycleConfig | null
  /** Failures in a row. */
  failing: FailingConfig | null
  /** Sub-agents that no second try helps. */
  terminalDelegation: TerminalDelegationConfig | null
}
