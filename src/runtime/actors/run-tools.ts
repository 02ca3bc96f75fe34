import { fromCallback } from 'xstate'
import { haltsBatch } from '../../../machines/agent/delegation.js'
import type { AgentMachineEvent } from '../../../machines/agent/events.js'
import type { ToolResult } from '../../../machines/agent/results.js'
import { runBatch } from '../../tools/run-batch.js'
import { Team } from '../delegation/team.js'
import { agentOf } from '../live.js'
import type { Parts } from '../parts.js'
import { toolExecution, toolProgress } from '../tool-execution.js'

/**
 * Carries out the started calls of the batch. A callback actor, because what it sends after a stop is dropped; it has
 * no signal of its own, so it owns an AbortController.
 */
export const runTools = (parts: Parts) =>
  fromCallback<AgentMachineEvent>(({ sendBack, self }) => {
    const { live, context, parent } = agentOf(self)
    const controller = new AbortController()
    const { signal } = controller
    const calls = context.calls.filter((call) => call.started && call.result === undefined)
    const waiting = new Map(calls.map((call) => [call.id, call]))
    let open = calls.length
    const { concurrency, timeoutMs, maxResultChars } = context.config.toolCalls
    const team = new Team({ live, agent: parent, tools: self, report: sendBack, signal })
    const run = async (): Promise<void> => {
      await live.flushed()
      if (signal.aborted) return
      await runBatch(calls, {
        tools: parts.tools,
        concurrency,
        defaultTimeoutMs: timeoutMs,
        maxResultChars,
        signal,
        clock: live.clock,
        context: live.binding.context,
        runId: context.runId,
        sessionId: context.sessionId,
        batchId: `${context.runId}.${context.batchNumber}`,
        // Whoever hears of the step that starts may stop the run.
        delegate: async (...of) => (signal.aborted ? null : team.carryOut(...of)),
        onProgress: (callId, name, progress) => {
          live.emit({ type: 'tool_progress', callId, name, progress })
          if (!context.features.resultShields) live.emit(toolProgress(context, callId, name, progress))
        },
        onStart: (callId) => {
          const call = waiting.get(callId)
          waiting.delete(callId)
          if (call) live.steps.start(self, toolExecution(context, call))
        },
        onResult: (callId, result) => {
          open -= 1
          const usage = team.settle(callId, result)
          if (haltsBatch(context, result)) {
            // The run is about to be halted: what has not been started never will be.
            for (const id of waiting.keys()) sendBack({ type: 'TOOL_RESULT', callId: id, result: notStarted })
          }
          sendBack({ type: 'TOOL_RESULT', callId, result, ...(usage && { usage }) })
        },
      })
      sendBack({ type: 'BATCH_DONE' })
    }
    void run()
    return () => {
      team.stop()
      // Aborting costs an exception with its stack; after the last result there is nobody to hear it.
      if (open > 0) controller.abort()
    }
  })

const notStarted: ToolResult = {
  status: 'not_executed',
  content: 'Not executed: a guardrail stopped the run (terminal_delegation).',
  durationMs: 0,
}
