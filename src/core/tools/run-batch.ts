import type { ToolResult } from '../../../machines/agent/results.js'
import { CallAbort } from '../base/abort.js'
import { runCall, type RunCallOptions, type RunnableCall } from './run-call.js'

export interface RunBatchOptions extends RunCallOptions {
  /** Calls that run at once; at least 1. */
  concurrency: number
  /** Stops the batch. */
  abort: CallAbort
  /** Told before a call is executed. */
  onStart?: (callId: string) => void
  /** Told exactly once a call, in the order in which they end; not of sub-agents that rest. */
  onResult: (callId: string, result: ToolResult) => void
}

/**
 * Executes calls, `concurrency` at a time, starting them in order. Resolves when each has its result or rests, or as soon as
 * `abort` does: then nothing is started and nothing is reported any more. Never rejects: what a callback throws is
 * its owner's affair and stops neither the batch nor the process.
 */
export function runBatch(calls: readonly RunnableCall[], options: RunBatchOptions): Promise<void> {
  const { abort: batch, concurrency, onStart, onResult } = options
  const running = new Set<CallAbort>()
  // Shared by the lanes: each takes the next call when it is free.
  const waiting = calls.values()
  const lane = async (): Promise<void> => {
    for (const call of waiting) {
      if (batch.aborted) return
      const abort = new CallAbort()
      running.add(abort)
      onStart?.(call.id)
      // oxlint-disable-next-line no-await-in-loop -- one call after the other is what a lane is
      const result = await runCall(call, options, abort)
      running.delete(abort)
      if (batch.aborted) return
      if (result === null) continue
      try {
        onResult(call.id, result)
      } catch {
        // The next calls still have to run.
      }
    }
  }
  const stop = (): void => {
    for (const abort of running) abort.abort(batch.reason)
  }
  const lanes = Math.min(calls.length, Math.max(1, concurrency || 1))
  return untilAborted(batch, stop, () =>
    lanes === 1 ? lane() : Promise.all(Array.from({ length: lanes }, lane)),
  )
}

/** Waits for work that never rejects; at an abort calls `stop` at once and waits no longer. */
function untilAborted(abort: CallAbort, stop: () => void, work: () => Promise<unknown>): Promise<void> {
  return new Promise((resolve) => {
    if (abort.aborted) return resolve()
    abort.onAbort = () => {
      stop()
      resolve()
    }
    void work().then(() => {
      abort.onAbort = undefined
      return resolve()
    })
  })
}
