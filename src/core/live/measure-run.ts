import type { AnyActorRef } from 'xstate'
import type { AgentContext } from '../../../machines/agent/context.js'
import type { EmittedEvent } from '../../../machines/agent/announcements.js'
import { describeError } from '../base/errors.js'
import { beginTelemetry, type SafeTelemetry } from '../telemetry/safe-telemetry.js'
import type { TelemetryRunInfo, Telemetry, TelemetryParent } from '../telemetry/telemetry.js'

/** What measures an agent's runs, and the model that they ask. */
export interface MeasuringOptions {
  readonly telemetry: Telemetry | undefined
  readonly model: TelemetryRunInfo['model']
}

/** A run that begins in this process. */
interface MeasuredStart {
  runId: string
  /** What it starts from; null when it is restored. */
  input: { sessionId: string } | null
  /** What the log has kept of an earlier process. */
  link: string | null | undefined
  above: TelemetryParent | undefined
  /** The agent actor. */
  self: unknown
  emit: (announcement: EmittedEvent) => void
}

/** Undefined without telemetry. A sub-agent uses the telemetry of the run above, unless it has its own. */
export function measureRun(
  { telemetry: own, model }: MeasuringOptions,
  { runId, input, link = null, above, self, emit }: MeasuredStart,
): SafeTelemetry | undefined {
  const telemetry = own ?? above?.telemetry
  if (telemetry === undefined) return undefined
  const context = (): AgentContext =>
    ((self as AnyActorRef).getSnapshot() as { context: AgentContext }).context
  const { sessionId } = input ?? context()
  const isResumed = input === null
  const run: TelemetryRunInfo = { runId, sessionId, model, isResumed, link, parent: above ?? null, context }
  return beginTelemetry(telemetry, run, (thrown) => {
    const message = `The telemetry threw: ${describeError(thrown)}`
    emit({ type: 'warning', code: 'telemetry_error', message })
  })
}
