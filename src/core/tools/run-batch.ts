import type { ToolResult } from '../../../machines/agent/results.js'
import { CallAbort } from '../base/abort.js'
import { runCall, type RunCallOptions, type RunnableCall } from './run-call.js'

export interface RunBatchOptions extends RunCallOptions {
  /** Calls that run at once; at least 1. */
  concurrency: number
  /** Stops the batch. */
  signal: AbortSignal
  /** Told before a call is executed. */
  onStart?: (callId: string) => void
  /** Told exactly once a call, in the order in which they end; not of sub-agents that rest. */
  onResult: (callId: string, result: ToolResult) => void
}

/**
 * Executes calls, `concurrency` at a time, starting them in order. Resolves when each has its result or rests, or as soon as
 * `signal` aborts: then nothing is started and nothing is reported any more. Never rejects: what a callback throws is
 * its owner's affair and stops neither the batch nor the process.
 */
export async function runBatch(calls: readonly RunnableCall[], options: RunBatchOptions): Promise<void> {
  const { signal, concurrency, onStart, onResult } = options
  const running = new Set<CallAbort>()
  // Shared by the lanes: each takes the next call when it is free.
  const waiting = calls.values()
  const lane = async (): Promise<void> => {
    for (const call of waiting) {
      if (signal.aborted) return
      const abort = new CallAbort()
      running.add(abort)
      onStart?.(call.id)
      // oxlint-disable-next-line no-await-in-loop -- one call after the other is what a lane is
      const result = await runCall(call, options, abort)
      running.delete(abort)
      if (signal.aborted) return
      if (result === null) continue
      try {
        onResult(call.id, result)
      } catch {
        // The next calls still have to run.
      }
    }
  }
  const stop = (): void => {
    for (const abort of running) abort.abort(signal.reason)
  }
  const lanes = Math.min(calls.length, Math.max(1, concurrency || 1))
  await untilAborted(signal, stop, () => Promise.all(Array.from({ length: lanes }, lane)))
}

/** Waits for work that never rejects; at an abort calls `stop` at once and waits no longer. */
function untilAborted(signal: AbortSignal, stop: () => void, work: () => Promise<unknown>): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve()
    const onAbort = (): void => {
      stop()
      resolve()
    }
    signal.addEventListener('abort', onAbort, { once: true })
    void work().finally(() => {
      signal.removeEventListener('abort', onAbort)
      resolve()
    })
  })
}
