import type { AgentEvent } from '../../../machines/agent/announcements.js'
import type { RunResult } from '../../../machines/agent/run-result.js'

/** From what happens to text for stdout: no I/O, no clock. */
export interface Renderer {
  renderEvent(event: AgentEvent): string
  /** How the run stands when the command ends. */
  renderResult(result: RunResult): string
}
