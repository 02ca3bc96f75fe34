import type {
  CycleConfig,
  EmptyAnswerConfig,
  FailingConfig,
  RepeatedCallConfig,
  RepeatedOutputConfig,
  TerminalDelegationConfig,
} from '../../guards/config.js'
import type { ContextStrategy } from './fit.js'

/** The configuration of a run with every default filled in: plain JSON. `null` and 0 are off where the key says so. */
export interface AgentConfig {
  limits: {
    /** Steps a run, exactly. A step is one accepted model response. null = off. */
    maxSteps: number | null
    /** Milliseconds. 0 = off. Stands still in WAITING_FOR_INPUT and PAUSED. */
    timeoutMs: number
    /** Input + output tokens. 0 = off. */
    tokenBudget: number
    /** Output tokens. 0 = off. */
    outputTokens: number
    /** USD. 0 = off. */
    costLimit: number
    /** `conclude`: one last request without tools at MAX_STEPS or a guard halt. */
    onLimit: 'stop' | 'conclude'
  }
  budget: {
    scope: 'session' | 'run'
    /** Whether cached input tokens count against tokenBudget. */
    countCached: boolean
    onOvershoot: 'exceeded' | 'complete'
    finishBatch: boolean
    preflight: boolean
    onUnknownPrice: 'error' | 'warn'
    onMissingUsage: 'estimate' | 'zero'
  }
  retry: {
    /** Attempts a step on recoverable errors, the first included. */
    maxAttempts: number
    /** Attempts a step on rate limits, counted apart. */
    rateLimitAttempts: number
    baseDelayMs: number
    maxDelayMs: number
    /** The longest Retry-After that is waited out; a longer one ends the run at once. */
    maxRetryAfterMs: number
  }
  stream: boolean
  /** Milliseconds. No bytes for this long, in a stream or in a whole answer that has begun, is a recoverable error. 0 = off. */
  streamIdleMs: number
  /**
   * Milliseconds. How long an answer may bring no content: comments and empty pieces keep it alive no longer than this (some
   * providers send them while a slow model thinks), and a whole answer has to begin within it. 0 = off.
   */
  contentIdleMs: number
  completion: {
    onMissingEnd: 'retry' | 'accept'
    /** How often an answer that does not fit the output schema is asked for again. 0 = off. */
    maxOutputRepairs: number
  }
  context: {
    /** Tokens that a request may have: instructions, tools and messages. 0 = off. */
    window: number
    /**
     * What happens to a transcript that is longer. `sliding_window`: the oldest messages are left out · `compact`: the
     * first and the newest stay, a marker says what was dropped · `summarize`: the model sums up what is dropped ·
     * `none`: a request that does not fit ends the run.
     */
    strategy: ContextStrategy
  }
  toolCalls: {
    /** Calls of one batch that run at once. */
    concurrency: number
    /**
     * Milliseconds a call may take whose tool has no `timeoutMs` of its own; then the model reads that it was abandoned. Waiting
     * for people, clients and sub-agents does not count. 0 = off.
     */
    timeoutMs: number
    /** Characters of a result that the model gets to read. */
    maxResultChars: number
    /**
     * What becomes of a call that was running when the process died, and that may not simply run again (its tool is
     * neither `readOnly` nor `idempotent`). `result`: the model reads that its outcome is unknown · `approval`: a
     * person decides whether it runs again.
     */
    onInterrupted: 'result' | 'approval'
  }
  /** True: a natural end waits for the next user message instead of ending the run. */
  interactive: boolean
  guardrails: {
    /** Continuations of a truncated answer, a run. 0 = off. */
    maxTokensRecoveries: number
    /** Identical consecutive batches that execute. */
    maxRepeatedToolSteps: number
    /** nearBudget(): remaining tokens at or under this. */
    reserveTokens: number
    /** nearBudget(): remaining cost at or under this fraction of costLimit. */
    reserveCostFraction: number
    repeatedCall: RepeatedCallConfig | null
    repeatedOutput: RepeatedOutputConfig | null
    cycle: CycleConfig | null
    failing: FailingConfig | null
    terminalDelegation: TerminalDelegationConfig | null
    emptyAnswer: EmptyAnswerConfig | null
  }
}

/** Numbers that `null` switches off, as it does `limits.maxSteps` and every guard. */
type CanBeOff =
  | 'timeoutMs'
  | 'tokenBudget'
  | 'outputTokens'
  | 'costLimit'
  | 'streamIdleMs'
  | 'contentIdleMs'
  | 'window'
  | 'maxOutputRepairs'
  | 'maxTokensRecoveries'
  | 'maxRepeatedToolSteps'
  | 'reserveTokens'
  | 'reserveCostFraction'

type Setting<Key, Value> =
  | (Value extends object ? { [Inner in keyof Value]?: Value[Inner] | undefined } : Value)
  | (Key extends CanBeOff ? null : never)
  | undefined

/** A configuration as a user writes it: every key may be left out; `null` switches a limit or a guard off. */
export type AgentConfigInput = {
  [Section in keyof AgentConfig]?: AgentConfig[Section] extends object
    ? { [Key in keyof AgentConfig[Section]]?: Setting<Key, AgentConfig[Section][Key]> } | undefined
    : Setting<Section, AgentConfig[Section]>
}
