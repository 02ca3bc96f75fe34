import type { EmittedEvent } from '../../../machines/agent/announcements.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import type { ModelFailure, ModelResponse } from '../../../machines/agent/model-response.js'
import type { ShieldPoint } from '../../../machines/agent/screening.js'
import type { Usage } from '../../../machines/agent/usage.js'
import type { ModelRequest } from '../models/provider.js'

/**
 * Measures runs, for example `otel()` from `statewright/otel`. Errors in the telemetry do not affect a run. The first
 * error becomes a `warning` (`telemetry_error`).
 * @example
 * const telemetry: Telemetry = {
 *   begin: ({ runId }) => ({
 *     link: () => null,
 *     around: (step, work) => {
 *       console.log(runId, step.type)
 *       return work()
 *     },
 *     event: ({ type }) => console.log(runId, type),
 *     end: () => undefined,
 *   }),
 * }
 * createAgent({ model, telemetry })
 */
export interface Telemetry {
  /** Called when a run starts or resumes in this process. */
  begin(run: TelemetryRunInfo): RunTelemetry
}

/** A run that is measured. */
export interface TelemetryRunInfo {
  readonly runId: string
  readonly sessionId: string
  /** The agent's model. */
  readonly model: { readonly provider: string; readonly model: string }
  /** Whether another handle or process started the run. */
  readonly isResumed: boolean
  /** The last value that `link()` returned, as stored in the log. */
  readonly link: string | null
  /** For a sub-agent, the call that started it. */
  readonly parent: TelemetryParent | null
  /** Returns the current state of the run. */
  context(): AgentContext
}

/** The parent of a sub-agent's run. */
export interface TelemetryParent {
  /** The parent's telemetry, used if the sub-agent's agent has none. */
  readonly telemetry: Telemetry
  /** The telemetry of the run that called the sub-agent, and the call. */
  readonly run: RunTelemetry
  readonly callId: string
  readonly name: string
  /** Whether shields of a parent run still check the content, which must then not be recorded. */
  readonly isUncleared: boolean
}

/** The telemetry of one run in this process. */
export interface RunTelemetry {
  /** The parts of a combined telemetry (`telemetry: [a, b]`). */
  readonly parts?: readonly RunTelemetry[]
  /**
   * Called whenever the run starts working, including after a rest or a resume. The returned link is stored in the
   * first record of this work and passed to other processes as `TelemetryRunInfo.link`.
   */
  link(): string | null
  /** Wraps requests, tools, shields and searches. Must call `work` exactly once and return its result. */
  around<T>(step: TelemetryStepInfo, work: () => T): T
  /** Receives every event of the run, whether or not there are subscribers. */
  event(announcement: EmittedEvent): void
  /** Called when the actor was stopped and no more events follow. Not called after `run_ended`. */
  end(): void
}

/** Work whose start and end are reported by `step_started` and `step_completed`. */
export type TelemetryStepInfo =
  | TelemetryRequestInfo
  | { readonly type: 'tool_execution'; readonly callId: string; readonly description: string }
  | { readonly type: 'shield_call'; readonly point: ShieldPoint; readonly callId?: string | undefined }
  | { readonly type: 'memory_retrieval' }

/** One request to one model, also of `withFallbacks`. Unknown fields are filled in as it proceeds. */
export interface TelemetryRequestInfo {
  readonly type: 'inference'
  /** The purpose of the request: an answer, the final answer at a limit, or a summary for compaction. */
  readonly purpose: 'answer' | 'conclusion' | 'summary'
  /** Number of the step, counted from 1 like `result.steps`. */
  readonly step: number
  /** Number of the attempt, counted from 1 per step. */
  readonly attempt: number
  /** Number of models abandoned in this attempt. */
  readonly fallback: number
  readonly request: ModelRequest
  provider: string
  model: string
  /** The server. Null if the provider does not report it. */
  endpoint: { readonly host: string; readonly port: number } | null
  /** The time when the request was sent, in milliseconds since the epoch. */
  readonly sentAt: number
  /** Waits for limiters (`createLimiter`), in milliseconds since the epoch. `until` is null while the request waits. */
  readonly waits: { readonly limiter: string; readonly since: number; until: number | null }[]
  firstChunkAt: number | null
  /** The whole answer. */
  response: ModelResponse | null
  responseId: string | null
  /** Why another model is used instead, with the cost of this request. */
  failure: ModelFailure | null
  usage: Usage | null
}
