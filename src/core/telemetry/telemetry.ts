import type { EmittedEvent } from '../../../machines/agent/announcements.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import type { ModelFailure, ModelResponse } from '../../../machines/agent/model-response.js'
import type { ShieldPoint } from '../../../machines/agent/screening.js'
import type { Usage } from '../../../machines/agent/usage.js'
import type { ModelRequest } from '../models/provider.js'

/**
 * What measures runs: `otel()` of `statewright/otel`, or one of your own. What it throws never hurts a run: it is told as
 * one `warning` (`telemetry_error`).
 *
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
  /** A run starts or resumes in this process. */
  begin(run: TelemetryRunInfo): RunTelemetry
}

/** A run that is measured. */
export interface TelemetryRunInfo {
  readonly runId: string
  readonly sessionId: string
  /** The model that the agent asks. */
  readonly model: { readonly provider: string; readonly model: string }
  /** Whether it was begun before: by another handle, or another process. */
  readonly isResumed: boolean
  /** What `link()` gave last, as the log has kept it. */
  readonly link: string | null
  /** Of a sub-agent: the call that it carries out. */
  readonly parent: TelemetryParent | null
  /** How it stands. */
  context(): AgentContext
}

/** Where a sub-agent stands. */
export interface TelemetryParent {
  /** What measures it where its agent has nothing of its own. */
  readonly telemetry: Telemetry
  /** What measures the run that has called it, and the call. */
  readonly run: RunTelemetry
  readonly callId: string
  readonly name: string
  /**
   * Shields of a run above screen the results of its calls: the content of a sub-agent is uncleared, and must not be
   * recorded.
   */
  readonly isUncleared: boolean
}

/** What measures one run in this process. */
export interface RunTelemetry {
  /** Of several telemetries as one (`telemetry: [a, b]`): what measures the run for each. */
  readonly parts?: readonly RunTelemetry[]
  /**
   * The run begins to work: at its start, after a rest, or when it is resumed. The returned link is kept in the first
   * record of this work; another process gets it as `TelemetryRunInfo.link`.
   */
  link(): string | null
  /**
   * Around a piece of work: the provider's request, the tool's `execute`, the look of a shield, the search of memory.
   * Calls
   * `work` once and returns what it returns.
   */
  around<T>(step: TelemetryStepInfo, work: () => T): T
  /** Receives every event of the run, with and without subscribers. */
  event(announcement: EmittedEvent): void
  /** Its actor was stopped: nothing is told any more. Not called after `run_ended`. */
  end(): void
}

/** A piece of work. That it began and how it ended is told by `step_started` and `step_completed`. */
export type TelemetryStepInfo =
  | TelemetryRequestInfo
  | { readonly type: 'tool_execution'; readonly callId: string; readonly description: string }
  | { readonly type: 'shield_call'; readonly point: ShieldPoint; readonly callId?: string | undefined }
  | { readonly type: 'memory_retrieval' }

/**
 * One model is asked once: `withFallbacks` makes a new one for each model. What is not known at first is filled in
 * while it goes on.
 */
export interface TelemetryRequestInfo {
  readonly type: 'inference'
  /** What for: an answer, the last answer at a limit, or a summary of what the window has no room for. */
  readonly purpose: 'answer' | 'conclusion' | 'summary'
  /** Counted from 1, as `result.steps`. */
  readonly step: number
  /** Counted from 1, anew for each step. */
  readonly attempt: number
  /** How many models were given up in this attempt. */
  readonly fallback: number
  readonly request: ModelRequest
  /** Of the model that is asked. */
  provider: string
  model: string
  /** The server that is asked; null where the provider does not say. */
  endpoint: { readonly host: string; readonly port: number } | null
  /** Milliseconds since the epoch. */
  readonly sentAt: number
  /** Its waits for limiters (`createLimiter`), in milliseconds since the epoch; `until` is null while it waits. */
  readonly waits: { readonly limiter: string; readonly since: number; until: number | null }[]
  firstChunkAt: number | null
  /** The whole answer, and what the provider calls it. */
  response: ModelResponse | null
  responseId: string | null
  /** Why it was given up for another model, and what that had cost. */
  failure: ModelFailure | null
  usage: Usage | null
}
