import type { AnyActorRef } from 'xstate'
import type { AgentContext } from '../../../machines/agent/context.js'
import type { Announcement } from '../../../machines/agent/announcements.js'
import { describeError } from '../base/describe-error.js'
import { measured, type SafeTelemetry } from '../telemetry/safe-telemetry.js'
import type { MeasuredRun, Telemetry, TelemetryAbove } from '../telemetry/telemetry.js'

/** What measures an agent's runs, and the model that they ask. */
export interface Measuring {
  readonly telemetry: Telemetry | undefined
  readonly model: MeasuredRun['model']
}

/** A run that begins in this process. */
interface Begun {
  runId: string
  /** What it starts from; null when it is restored. */
  input: { sessionId: string } | null
  /** What the log has kept of an earlier process. */
  link: string | null | undefined
  above: TelemetryAbove | undefined
  /** The agent actor. */
  self: unknown
  emit: (announcement: Announcement) => void
}

/** Undefined where nobody measures: a sub-agent is measured by what measures the run above, unless it has its own. */
export function measureRun(
  { telemetry: own, model }: Measuring,
  { runId, input, link = null, above, self, emit }: Begun,
): SafeTelemetry | undefined {
  const telemetry = own ?? above?.telemetry
  if (telemetry === undefined) return undefined
  const context = (): AgentContext =>
    ((self as AnyActorRef).getSnapshot() as { context: AgentContext }).context
  const { sessionId } = input ?? context()
  const isResumed = input === null
  const run: MeasuredRun = { runId, sessionId, model, isResumed, link, above: above ?? null, context }
  return measured(telemetry, run, (thrown) => {
    const message = `The telemetry threw: ${describeError(thrown)}`
    emit({ type: 'warning', code: 'telemetry_error', message })
  })
}
