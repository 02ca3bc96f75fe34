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

/** At which count a detector speaks to the model, and stops the run. Null: never. */
export interface Steps {
  /** The model reads what was seen and what to try, once. */
  nudgeAt: number | null
  /** The run stops. */
  haltAt: number | null
}

/** The same for a detector that can tell which call is to blame. */
export interface StepsWithBlock extends Steps {
  /** From here on the call is refused, with a result that says so; the run goes on. */
  blockAt: number | null
}

/**
 * Progress is news: a call not made before in this turn, or a result not seen before from it. Each detector watches for
 * one way of making none; `null` switches it off. A turn begins with a user message. Counts are of batches (the calls of
 * one response) unless said otherwise; a call that waits counts for less, a `polling` one not at all.
 *
 * The numbers were chosen on recorded sessions; docs/guardrails.md has the figures.
 */
export interface ProgressConfig {
  /**
   * One batch over and over: batches in a row after the first. Default: 2, 4, 20. A refusal costs a request and no call, so
   * it comes soon; of the sessions that ended well, some came back by themselves after 13 repetitions, so the halt is late.
   */
  stale: StepsWithBlock | null
  /** Different batches in a row that bring nothing new: A B A B, a cycle of any length. Default: 4, 6, 20, as above. */
  mixed: StepsWithBlock | null
  /** Batches without news among the last ones, those refused apart: circles with something new thrown in. */
  mostly: MostlyConfig | null
  /**
   * One call that is repeated beside others that are new, batches in a row. Default: 3, 5, 7; no session that ended well
   * had two. It counts for a third beside a call that may have changed something, which may be how the change is looked at.
   */
  beside: StepsWithBlock | null
  /**
   * The same call with the same result, whatever comes between. Default: 6, 7, 14; a third each after something new,
   * because it may matter then: tests after each edit may fail the same way nineteen times before they are refused.
   */
  recurring: StepsWithBlock | null
  /** Other arguments, the same output, from one tool: calls in a row. */
  sameOutput: SameOutputConfig | null
  /** Batches in a row of which every call failed. Default: 7, 11; sessions that ended well had up to 8. */
  failing: Steps | null
  /** Batches in a row in which one tool failed, whatever other tools did. Default: 8, 20: the others may be progress. */
  failingTool: Steps | null
  /** One tool, one error, other arguments: the error is not about them. Default: 5, 8; up to 6 ended well. */
  sameError: Steps | null
  /** Batches in a row that ask for tools that do not exist. Default: 2, 6: there is nothing to be learned from it. */
  unknownTools: Steps | null
  /** Batches in a row that people, shields, policies or other guards refused whole. Default: 3, 8: each costs somebody time. */
  refused: Steps | null
  /** The same call, denied by a tool's policy: it will be denied again. Default: 1, 2. Ends in `ERROR`. */
  policyDenied: Steps | null
  /** Batches in a row that failed in passing, with none that succeeded. Default: 6, 10: retries are what should be made. */
  transient: Steps | null
  /** Identical calls in one response. */
  duplicates: DuplicatesConfig | null
  /** What tells a call that waits from one that works. */
  waiting: WaitingConfig | null
  /** How many pairs of call and result of a turn are remembered: at most 64, which is what guard state has room for. */
  memory: number
  /** `pause` (default): nothing is lost, and `resume()` goes on. Policy denials end in ERROR either way. */
  onHalt: OnHalt
  /** Before a pause: one last request without tools, so that there is an answer. Default true. */
  lastWords: boolean
}

/** Batches without news among the last `of`. */
export interface MostlyConfig extends Steps {
  /** How many batches are looked back at: 2 to 64. Default 20, of which 11 nudge and 16 halt. */
  of: number
}

/** Other arguments, the same output. Nobody makes five hundred equal characters by chance, but many a tool says `ok`. */
export interface SameOutputConfig {
  /** Characters from which an output is long. Default 500. */
  longChars: number
  /** A long output, from any tool. Default: 5, 10; sessions that ended well had two. */
  long: Steps
  /** A shorter one, from a `readOnly` tool: searches that find nothing. Default: 6, 16; up to 13 empty days ended well. */
  short: Steps
  /** A shorter one, from a tool that may change things. Default: 12, 25; up to 22 equal edits ended well. */
  shortWrites: Steps
  /** What such a call counts for when its arguments differ by more than numbers: then it is other work. Default 1/3. */
  varied: number
}

export interface DuplicatesConfig {
  /** The first of them that is refused. Default 5: three key presses are work, fifty mails are not. */
  blockAt: number
}

/** A successful call that ran this long and said no more than this waits for something. */
export interface WaitingConfig {
  /** Milliseconds. Default 3000. */
  ms: number
  /** Characters. Default 300. */
  chars: number
  /** What it counts for. Default 1/3; it is never refused. */
  weight: number
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
  /** Turns that bring nothing new. */
  progress: ProgressConfig | null
}
