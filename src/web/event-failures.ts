import type { AgentEvent } from '../../machines/agent/announcements.js'
import type { ResultStatus } from '../../machines/agent/batch-calls.js'
import { StatewrightError } from '../core/base/errors.js'

/** A failure in the events of a run. `error`: what was thrown, if it was thrown in this process. */
export interface EventFailure {
  where: 'run' | 'tool' | 'retry' | 'warning'
  error: unknown
  callId: string | null
}

/** Finds failures in the events of a run and its sub-agents. The thrown error comes with an earlier step event. */
export class EventFailures {
  /** Thrown errors by the path of the call. */
  readonly #errorByCall = new Map<string, { error: unknown }>()
  /** The error of the last model request of a run, by the path of the run. */
  readonly #refusalByRun = new Map<string, { code: string; error: unknown }>()

  findFailure(event: AgentEvent, path = ''): EventFailure | null {
    switch (event.type) {
      case 'child_event':
        return this.findFailure(event.event, `${path}${event.callId}/`)
      case 'step_completed': {
        const { error, outcome } = event
        if (event.stepType === 'tool_execution' && error?.cause !== undefined)
          this.#errorByCall.set(path + event.callId, { error: error.cause })
        if (event.stepType !== 'inference') return null
        if (outcome === 'ok') this.#refusalByRun.delete(path)
        else if (error) this.#refusalByRun.set(path, { code: error.code, error: error.cause })
        return null
      }
      case 'tool_result': {
        const callId = path + event.callId
        const thrown = this.#errorByCall.get(callId)
        this.#errorByCall.delete(callId)
        if (!isFailedStatus(event.status)) return null
        const error = thrown?.error ?? new StatewrightError(event.status, event.content)
        return { where: 'tool', error, callId }
      }
      case 'error':
      case 'retry': {
        const refused = this.#refusalByRun.get(path)
        const own = refused?.code === event.code ? refused.error : undefined
        const error = own ?? new StatewrightError(event.code, event.message)
        const callId = path === '' ? null : path.slice(0, -1)
        return { where: event.type === 'retry' ? 'retry' : 'run', error, callId }
      }
      case 'warning':
        return { where: 'warning', error: new StatewrightError(event.code, event.message), callId: null }
      default:
        return null
    }
  }
}

/** Whether a call failed. The outcome of an interrupted call is unknown, and a call that was not executed has not failed. */
export function isFailedStatus(status: ResultStatus): boolean {
  return !['ok', 'rejected', 'not_executed', 'not_loaded', 'interrupted'].includes(status)
}
