import type { EmptyAnswerConfig } from '../../guards/unusable-answer.js'
import type { RetryConfig } from '../../guards/retry.js'
import type { GuardrailsConfig } from '../../guards/roster.js'
import type { ContextStrategy } from './fit.js'

/** The complete configuration of a run, as plain JSON. `null` and 0 disable a key where noted. */
export interface AgentConfig {
  /** Limits of a run. Each run can override them. */
  limits: {
    /** Steps per run. A step is one accepted model response. null = off. */
    maxSteps: number | null
    /**
     * Tool calls per run. Excess calls do not run, and the run ends. A sub-agent counts as one call and has its own
     * limits. null = off.
     */
    maxToolCalls: number | null
    /** Tool calls per response. Excess calls get an error result, and the run continues. null = off. */
    maxToolCallsPerResponse: number | null
    /** Duration of a run in milliseconds. 0 = off. Paused in WAITING_FOR_INPUT and PAUSED. */
    timeoutMs: number
    /** Input and output tokens. 0 = off. */
    tokenBudget: number
    /** Output tokens. 0 = off. */
    outputTokens: number
    /** USD. 0 = off. */
    costLimit: number
    /** `conclude` makes one last request without tools at MAX_STEPS or a guard halt. */
    onLimit: 'stop' | 'conclude'
    /**
     * What happens when only the reserve of the budget is left (`guardrails.reserveTokens`,
     * `guardrails.reserveCostFraction`). `conclude` spends it on one last request without tools, and the run ends in
     * BUDGET_EXCEEDED. `warn` continues the run until the budget is used up.
     */
    onNearBudget: 'warn' | 'conclude'
  }
  /** How token and cost limits are counted. */
  budget: {
    /** Whether totals cover the session or only this run. */
    scope: 'session' | 'run'
    /** Whether cached input tokens count. */
    countCached: boolean
    /** A final answer above the limit: `exceeded` ends in BUDGET_EXCEEDED, `complete` in COMPLETED. */
    onOvershoot: 'exceeded' | 'complete'
    /**
     * Whether the calls of the response that exceeds the limit still run. If false, they are closed as not executed.
     */
    finishBatch: boolean
    /** Whether to withhold a request whose estimated input exceeds the limit. */
    preflight: boolean
    /** With a `costLimit` and an unknown price: `error` refuses to start, `warn` does not count cost. */
    onUnknownPrice: 'error' | 'warn'
    /** Tokens of a response without usage: estimated, or zero. */
    onMissingUsage: 'estimate' | 'zero'
  }
  /** Failures to retry. */
  retry: RetryConfig
  /** Whether to stream answers. The result is the same. */
  stream: boolean
  /** Milliseconds without bytes, in a stream or a started answer, before a recoverable error. 0 = off. */
  streamIdleMs: number
  /** Milliseconds for one call of the session store. Slower calls end the run (`store_error`). 0 = off. */
  storeTimeoutMs: number
  /**
   * Maximum milliseconds without content. Comments and empty chunks, which some providers send while a slow model
   * thinks, do not extend it. An answer that is not streamed must start to arrive within it. 0 = off.
   */
  contentIdleMs: number
  /** Rules for complete answers. */
  completion: {
    /** A stream that closes without an end marker: `retry`, or `accept` with a warning. */
    onMissingEnd: 'retry' | 'accept'
    /** How often to ask again for an answer that does not fit the output schema. 0 = off. */
    maxOutputRepairs: number
  }
  /** The context window, and how the transcript is trimmed to it. */
  context: {
    /** Tokens of a request: instructions, tools and messages. 0 = off. */
    window: number
    /**
     * How to trim a transcript that exceeds the window. `sliding_window` omits the oldest messages. `compact` keeps the
     * first and the newest messages and marks the gap. `summarize` replaces the gap with a summary by the model. `none`
     * ends the run at a request that does not fit.
     */
    strategy: ContextStrategy
  }
  /** How calls run. */
  toolCalls: {
    /** Concurrent calls of a batch. */
    concurrency: number
    /**
     * Milliseconds per call, unless its tool has a `timeoutMs`. The model then reads that it was abandoned. Waiting
     * for people, clients and sub-agents does not count. 0 = off.
     */
    timeoutMs: number
    /** Characters of a result for the model. Cuts are marked. */
    maxResultChars: number
    /**
     * Handling of a call that was running when the process died and may not run again (its tool is neither `readOnly`
     * nor `idempotent`). `result` reports an unknown outcome to the model. `approval` asks a person whether to run it
     * again.
     */
    onInterrupted: 'result' | 'approval'
  }
  /** Whether a run that ends naturally waits for the next user message. */
  interactive: boolean
  /** Guards. `null` disables one. */
  guardrails: GuardrailsConfig & {
    /** Continuations of truncated answers per run. 0 = off. */
    maxTokensRecoveries: number
    /** isNearBudget(): remaining tokens at or under this. */
    reserveTokens: number
    /** isNearBudget(): remaining cost at or under this fraction of costLimit. */
    reserveCostFraction: number
    /** Answers with neither text nor calls. */
    emptyAnswer: EmptyAnswerConfig | null
  }
}

/** Keys that `null` disables. */
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

/** A loop whose rules a preset reproduces. */
export type PresetName = 'aar' | 'openhuman' | 'openhumanTask' | 'llamaStack' | 'strands'

/**
 * The configuration that a user writes. Every key is optional. `null` disables a limit or a guard.
 *
 * @example
 * const config: AgentConfigInput = {
 *   limits: { maxSteps: 20, timeoutMs: 60_000, tokenBudget: null }, // null: off
 *   guardrails: { progress: { stale: { haltAt: 8 } }, emptyAnswer: null },
 * }
 * createAgent({ model, ...config })
 */
export type AgentConfigInput = {
  /**
   * Reproduces the rules of another loop. The other keys override it, key by key. No preset by default. See
   * docs/presets.md.
   */
  preset?: PresetName | undefined
} & {
  [Section in keyof AgentConfig]?: AgentConfig[Section] extends object
    ? { [Key in keyof AgentConfig[Section]]?: Setting<Key, AgentConfig[Section][Key]> } | undefined
    : Setting<Section, AgentConfig[Section]>
}
