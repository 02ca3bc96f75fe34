import { warnProcess } from '../base/platform.js'
import type { AgentEvent } from '../../../machines/agent/announcements.js'
import { StatewrightError, UsageError, describeError } from '../base/errors.js'
import { freezeOnce } from '../base/values.js'

/** A run that was refused before its start has one event. */
export function createRefusalEvent(runId: string, error: unknown, at: number): AgentEvent {
  return freezeOnce({ type: 'warning', ...describeRefusal(error), id: `${runId}:1`, runId, seq: 1, at })
}

/** The app does not listen, await or iterate: only the platform's own warnings are left. */
export function warnOfRefusal(error: unknown): void {
  const { code, message } = describeRefusal(error)
  warnProcess(`A run was refused, and its result is not awaited: ${message}`, code)
}

function describeRefusal(error: unknown): { code: string; message: string } {
  return {
    code: error instanceof StatewrightError ? error.code : 'run_refused',
    message: describeError(error),
  }
}

/** A method that the run cannot take as it stands. */
export function wrongStateError(method: string, state: string, why: string): UsageError {
  const text = `${method}(): the run is ${state} and ${why}. Await run.result, or watch run.state$, before you call it.`
  return new UsageError('wrong_state', text, method)
}
