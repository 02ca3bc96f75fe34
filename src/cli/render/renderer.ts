import type { AgentEvent } from '../../../machines/agent/announcements.js'
import type { RunResult } from '../../../machines/agent/run-result.js'

/** Turns events into text for stdout, without I/O or a clock. */
export interface Renderer {
  renderEvent(event: AgentEvent): string
  /** The result when the command ends. */
  renderResult(result: RunResult): string
}
