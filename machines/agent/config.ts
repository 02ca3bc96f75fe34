import type { EmptyAnswerConfig } from '../../guards/unusable-answer.js'
import type { RetryConfig } from '../../guards/retry.js'
import type { GuardrailsConfig } from '../../guards/roster.js'
import type { ContextStrategy } from './fit.js'

/**
 * The configuration of a run with every default filled in: plain JSON. `null` and 0 are off where the key says so.
 */
export interface AgentConfig {
  /** What ends a run whatever it does. Each run may override them, key by key. */
  limits: {
    /** Steps a run, exactly. A step is one accepted model response. null = off. */
    maxSteps: number | null
    /**
     * Tool calls a run, exactly. The calls beyond it do not run, and the run ends. A call of a sub-agent is one call; what the
     * sub-agent itself calls is counted by its own limits. null = off.
     */
    maxToolCalls: number | null
    /** Tool calls a response. The others get a result that says so, and the run goes on. null = off. */
    maxToolCallsPerResponse: number | null
    /** Milliseconds that the run may take. 0 = off. Stands still in WAITING_FOR_INPUT and PAUSED. */
    timeoutMs: number
    /** Tokens, input and output together. 0 = off. */
    tokenBudget: number
    /** Output tokens. 0 = off. */
    outputTokens: number
    /** USD. 0 = off. */
    costLimit: number
    /** `conclude`: one last request without tools at MAX_STEPS or a guard halt. */
    onLimit: 'stop' | 'conclude'
    /**
     * Only the reserve of the budget is left (`guardrails.reserveTokens`, `guardrails.reserveCostFraction`). `conclude`: it is spent
     * on one last request without tools, and the run ends in BUDGET_EXCEEDED. `warn`: the run goes on to the end of the budget.
     */
    onNearBudget: 'warn' | 'conclude'
  }
  /** How the limits of tokens and cost are counted, and what happens where they are crossed. */
  budget: {
    /** Whether the totals are those of the session, earlier runs included, or of this run alone. */
    scope: 'session' | 'run'
    /** Whether cached input tokens count against tokenBudget. */
    countCached: boolean
    /** A final answer that crosses the line: `exceeded` keeps it and says so, `complete` lets the natural end win. */
    onOvershoot: 'exceeded' | 'complete'
    /** True: the calls of the response that crosses the line still run. False: they are closed as not executed. */
    finishBatch: boolean
    /** True: a request whose estimated input alone crosses the line is not sent. */
    preflight: boolean
    /** With a `costLimit`, where no price is known: `error` refuses to start, `warn` runs without counting cost. */
    onUnknownPrice: 'error' | 'warn'
    /** A response without usage: its tokens are estimated, or count as none. */
    onMissingUsage: 'estimate' | 'zero'
  }
  /** Failures that a second attempt may mend. */
  retry: RetryConfig
  /** Whether answers are streamed. The result is the same. */
  stream: boolean
  /**
   * Milliseconds. No bytes for this long, in a stream or in a whole answer that has begun, is a recoverable error. 0 =
   * off.
   */
  streamIdleMs: number
  /**
   * Milliseconds that the session store may take for one answer; a store that takes longer ends the run (`store_error`).
   * 0 = off.
   */
  storeTimeoutMs: number
  /**
   * Milliseconds. How long an answer may bring no content: comments and empty pieces keep it alive no longer than this (some
   * providers send them while a slow model thinks), and a whole answer has to begin within it. 0 = off.
   */
  contentIdleMs: number
  /** What counts as an answer. */
  completion: {
    /** A stream that closes without an end: `retry` it as incomplete, or `accept` what came, with a warning. */
    onMissingEnd: 'retry' | 'accept'
    /** How often an answer that does not fit the output schema is asked for again. 0 = off. */
    maxOutputRepairs: number
  }
  /** The model's window, and what happens when the transcript outgrows it. */
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
  /** How the calls of a response are carried out. */
  toolCalls: {
    /** Calls of one batch that run at once. */
    concurrency: number
    /**
     * Milliseconds a call may take whose tool has no `timeoutMs` of its own; then the model reads that it was abandoned. Waiting
     * for people, clients and sub-agents does not count. 0 = off.
     */
    timeoutMs: number
    /** Characters of a result that the model gets to read; what is cut is marked. */
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
  /** What watches a run. `null` switches a guard off. */
  guardrails: GuardrailsConfig & {
    /** Continuations of a truncated answer, a run. 0 = off. */
    maxTokensRecoveries: number
    /** isNearBudget(): remaining tokens at or under this. */
    reserveTokens: number
    /** isNearBudget(): remaining cost at or under this fraction of costLimit. */
    reserveCostFraction: number
    /** Answers with neither text nor calls. */
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
  | 'storeTimeoutMs'
  | 'contentIdleMs'
  | 'window'
  | 'maxOutputRepairs'
  | 'maxTokensRecoveries'
  | 'maxRepeatedToolSteps'
  | 'reserveTokens'
  | 'reserveCostFraction'

type Setting<Key, Value> =
  | (Value extends object ? { [Inner in keyof Value]?: Setting<Inner, Value[Inner]> } : Value)
  | (Key extends CanBeOff ? null : never)
  | undefined

/** A loop whose rules `presets` reproduces. */
export type PresetName = 'aar' | 'openhuman' | 'openhumanTask' | 'llamaStack' | 'strands'

/**
 * A configuration as a user writes it: every key may be left out; `null` switches a limit or a guard off.
 *
 * @example
 * const config: AgentConfigInput = {
 *   limits: { maxSteps: 20, timeoutMs: 60_000, tokenBudget: null }, // null: off
 *   guardrails: { progress: { stale: { haltAt: 8 } }, emptyAnswer: null },
 * }
 * createAgent({ model, ...config })
 */
export type AgentConfigInput = {
  /** The rules of another loop: what the keys beside it change, key by key. Default: none. See docs/presets.md. */
  preset?: PresetName | undefined
} & {
  [Section in keyof AgentConfig]?: AgentConfig[Section] extends object
    ? { [Key in keyof AgentConfig[Section]]?: Setting<Key, AgentConfig[Section][Key]> } | undefined
    : Setting<Section, AgentConfig[Section]>
}
