import type { EmptyAnswerConfig } from '../../guards/unusable-answer.js'
import type { RetryConfig } from '../../guards/retry.js'
import type { GuardrailsConfig } from '../../guards/roster.js'
import type { ContextStrategy } from './fit.js'

/** The complete configuration of a run, as plain JSON. The comment on a key states whether `null` or 0 disables it. */
export interface AgentConfig {
  /** Limits of a run. Each run can override them. */
  limits: {
    /** Steps per run. A step is one accepted model response. null = off. */
    maxSteps: number | null
    /** Tool calls per run, after which the run ends. A sub-agent counts as one and has its own limits. null = off. */
    maxToolCalls: number | null
    /** Tool calls per response. Excess calls get an error result, and the run continues. null = off. */
    maxToolCallsPerResponse: number | null
    /** Duration of a run in milliseconds. 0 = off. The clock stops in WAITING_FOR_INPUT and PAUSED. */
    timeoutMs: number
    /** Limit on input plus output tokens. 0 = off. */
    tokenBudget: number
    /** Limit on output tokens. 0 = off. */
    outputTokens: number
    /** Limit in USD. 0 = off. */
    costLimit: number
    /** `conclude` makes one last request without tools at MAX_STEPS or a guard halt. `stop` ends the run. */
    onLimit: 'stop' | 'conclude'
    /**
     * What happens when only the reserve of the budget is left (`guardrails.reserveTokens`,
     * `guardrails.reserveCostFraction`). `conclude` spends it on one last request without tools, and the run ends in
     * BUDGET_EXCEEDED. `warn` lets the run continue until the budget is used up.
     */
    onNearBudget: 'warn' | 'conclude'
  }
  /** How tokens and cost count toward the limits. */
  budget: {
    /** Whether totals cover the session or only this run. */
    scope: 'session' | 'run'
    /** Whether cached input tokens count. */
    countCached: boolean
    /** The end of a final answer above the limit: BUDGET_EXCEEDED (`exceeded`) or COMPLETED (`complete`). */
    onOvershoot: 'exceeded' | 'complete'
    /** Whether to run the calls of the response that exceeds the limit. If false, they are closed as not executed. */
    finishBatch: boolean
    /** Whether to withhold a request whose estimated input would exceed the limit. */
    preflight: boolean
    /** With a `costLimit` and an unknown price: `error` refuses to start, `warn` does not count cost. */
    onUnknownPrice: 'error' | 'warn'
    /** How to count a response without usage: `estimate` its tokens, or count `zero`. */
    onMissingUsage: 'estimate' | 'zero'
  }
  /** Which failures to retry, and how often. */
  retry: RetryConfig
  /** Whether to stream answers. The result is the same either way. */
  stream: boolean
  /** Maximum milliseconds without bytes in a started answer; then a recoverable error. 0 = off. */
  streamIdleMs: number
  /** Milliseconds for one call to the session store. A slower call ends the run (`store_error`). 0 = off. */
  storeTimeoutMs: number
  /**
   * Maximum milliseconds without content. Comments and empty chunks, which some providers send while a slow model
   * thinks, do not extend it. For answers that are not streamed, it applies until the answer starts. 0 = off.
   */
  contentIdleMs: number
  /** Rules that decide when an answer is complete. */
  completion: {
    /** How to handle a stream that closes without an end marker: `retry`, or `accept` with a warning. */
    onMissingEnd: 'retry' | 'accept'
    /** How often to ask again after an answer that does not match the output schema. 0 = off. */
    maxOutputRepairs: number
  }
  /** The context window and how the transcript is trimmed to fit it. */
  context: {
    /** Maximum tokens in a request, including instructions, tools and messages. 0 = off. */
    window: number
    /**
     * How to trim a transcript that exceeds the window. `sliding_window` omits the oldest messages. `compact` keeps
     * the first and the newest messages and marks the gap. `summarize` replaces the gap with a summary that the model
     * writes. `none` ends the run at a request that does not fit.
     */
    strategy: ContextStrategy
  }
  /** How tool calls run. */
  toolCalls: {
    /** Maximum concurrent calls in a batch. */
    concurrency: number
    /**
     * Milliseconds per call, unless the tool has a `timeoutMs`. The model is informed that the call was abandoned. Time
     * spent waiting for people, clients and sub-agents does not count. 0 = off.
     */
    timeoutMs: number
    /** Maximum characters in a result for the model. Longer results are cut and marked. */
    maxResultChars: number
    /**
     * How to handle a call that was running when the process died, if its tool is neither `readOnly` nor `idempotent`.
     * `result` reports an unknown outcome to the model. `approval` asks a person whether to run it again.
     */
    onInterrupted: 'result' | 'approval'
  }
  /** Whether the run waits for the next user message when it would otherwise complete. */
  interactive: boolean
  /** The guards. `null` disables a guard. */
  guardrails: GuardrailsConfig & {
    /** Maximum continuations of truncated answers per run. 0 = off. */
    maxTokensRecoveries: number
    /** `isNearBudget()` is true when this many tokens or fewer remain. */
    reserveTokens: number
    /** `isNearBudget()` is true when this fraction of `costLimit` or less remains. */
    reserveCostFraction: number
    /** How to handle answers with neither text nor calls. */
    emptyAnswer: EmptyAnswerConfig | null
  }
}

/** Keys that `null` turns off. */
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

/** The loops whose rules a preset reproduces. */
export type PresetName = 'aar' | 'openhuman' | 'openhumanTask' | 'llamaStack' | 'strands'

/**
 * The configuration that a user writes. All keys are optional. `null` disables a limit or a guard.
 * @example
 * const config: AgentConfigInput = {
 *   limits: { maxSteps: 20, timeoutMs: 60_000, tokenBudget: null }, // null: off
 *   guardrails: { progress: { stale: { haltAt: 8 } }, emptyAnswer: null },
 * }
 * createAgent({ model, ...config })
 */
export type AgentConfigInput = {
  /** The rules of another loop. Other keys override them key by key. Defaults to none. See docs/presets.md. */
  preset?: PresetName | undefined
} & {
  [Section in keyof AgentConfig]?: AgentConfig[Section] extends object
    ? { [Key in keyof AgentConfig[Section]]?: Setting<Key, AgentConfig[Section][Key]> } | undefined
    : Setting<Section, AgentConfig[Section]>
}
