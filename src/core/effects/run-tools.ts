import type { AnyActorRef } from 'xstate'
import type { AgentContext } from '../../../machines/agent/context.js'
import { haltsBatch } from '../../../machines/agent/delegation.js'
import type { AgentMachineEvent } from '../../../machines/agent/events.js'
import type { ToolResult } from '../../../machines/agent/results.js'
import { runBatch } from '../tools/run-batch.js'
import type { CallAbort } from '../base/abort.js'
import { Team } from './team.js'
import type { Live } from '../live/live.js'
import type { AgentParts } from '../live/parts.js'
import { toolExecution, toolProgress } from './tool-execution.js'

/** What the actor of a batch gives to those who work in it. */
export interface BatchScope {
  live: Live
  context: AgentContext
  /** The agent actor, and the actor of the batch. */
  agent: AnyActorRef
  self: AnyActorRef
  /** Aborts when the batch is stopped. */
  abort: CallAbort
  sendBack: (event: AgentMachineEvent) => void
}

/** A batch of calls that is carried out. */
export interface Batch {
  /** Settles when every call has its result, or rests. */
  readonly done: Promise<void>
  /** Lets go of what the batch listens to; true when somebody still works for it. */
  stop: () => boolean
}

/** Carries out the started calls of the batch, and tells of each result as it comes. */
export function runTools(
  parts: AgentParts,
  { live, context, agent, self, abort, sendBack }: BatchScope,
): Batch {
  const calls = context.calls.filter((call) => call.started && call.result === undefined)
  const waiting = new Map(calls.map((call) => [call.id, call]))
  let open = calls.length
  const { concurrency, timeoutMs, maxResultChars } = context.config.toolCalls
  const team = new Team({ live, agent, tools: self, report: sendBack, abort })
  const run = async (): Promise<void> => {
    await live.flushed()
    if (abort.aborted) return
    await runBatch(calls, {
      tools: parts.tools,
      concurrency,
      defaultTimeoutMs: timeoutMs,
      maxResultChars,
      abort,
      clock: live.clock,
      context: live.binding.context,
      runId: context.runId,
      sessionId: context.sessionId,
      batchId: `${context.runId}.${context.batchNumber}`,
      // Whoever hears of the step that starts may stop the run.
      delegate: async (...of) => (abort.aborted ? null : team.carryOut(...of)),
      onProgress: (callId, name, progress) => {
        // Shields look at what a tool returns when it has ended; what it says until then nobody has seen.
        if (context.features.resultShields) return
        live.emit({ type: 'tool_progress', callId, name, progress })
        live.emit(toolProgress(context, callId, name, progress))
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
  }
  return {
    done: run(),
    stop: () => {
      team.stop()
      return open > 0
    },
  }
}

const notStarted: ToolResult = {
  status: 'not_executed',
  content: 'Not executed: a guardrail stopped the run (terminal_delegation).',
  durationMs: 0,
}
