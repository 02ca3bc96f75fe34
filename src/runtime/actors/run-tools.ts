import { fromCallback } from 'xstate'
import type { AgentMachineEvent } from '../../../machines/agent/events.js'
import { runBatch } from '../../tools/run-batch.js'
import { agentOf } from '../live.js'
import type { Parts } from '../parts.js'

/**
 * Carries out the started calls of the batch. A callback actor, because what it sends after a stop is dropped; it has
 * no signal of its own, so it owns an AbortController.
 */
export const runTools = (parts: Parts) =>
  fromCallback<AgentMachineEvent>(({ sendBack, self }) => {
    const { live, context } = agentOf(self)
    const controller = new AbortController()
    const calls = context.calls.filter((call) => call.started && call.result === undefined)
    let open = calls.length
    const { concurrency, timeoutMs, maxResultChars } = context.config.toolCalls
    const run = async (): Promise<void> => {
      await live.flushed()
      if (controller.signal.aborted) return
      await runBatch(calls, {
        tools: parts.tools,
        concurrency,
        defaultTimeoutMs: timeoutMs,
        maxResultChars,
        signal: controller.signal,
        clock: live.clock,
        context: live.binding.context,
        runId: context.runId,
        sessionId: context.sessionId,
        batchId: `${context.runId}.${context.batchNumber}`,
        onProgress: (callId, name, progress) => {
          live.emit({ type: 'tool_progress', callId, name, progress })
        },
        onResult: (callId, result) => {
          open -= 1
          sendBack({ type: 'TOOL_RESULT', callId, result })
        },
      })
      sendBack({ type: 'BATCH_DONE' })
    }
    run().catch(() => {
      // The journal could not be written: nothing may run, and the calls are closed as interrupted.
      sendBack({ type: 'BATCH_DONE' })
    })
    return () => {
      // Aborting costs an exception with its stack; after the last result there is nobody to hear it.
      if (open > 0) controller.abort()
    }
  })
