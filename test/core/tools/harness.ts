import { SimulatedClock } from 'xstate'
import type { ToolResult } from '../../../machines/agent/batch-calls.js'
import type { AgentMachineEvent } from '../../../machines/agent/context.js'
import type { EmittedEvent } from '../../../machines/agent/announcements.js'
import { CallAbort } from '../../../src/core/base/abort.js'
import type { Clock } from '../../../src/core/base/clock.js'
import { ToolBatch } from '../../../src/core/effects/run-tools.js'
import type { RunnableCall } from '../../../src/core/tools/running-call.js'
import { type ToolEntry, createToolSet } from '../../../src/core/tools/tool-set.js'

interface BatchSettings {
  concurrency: number
  defaultTimeoutMs: number
  maxResultChars: number
  abort: CallAbort
  clock: Clock
  context: unknown
  onStart: (callId: string) => void
  onProgress: (callId: string, name: string, value: unknown) => void
  onResult: (callId: string, result: ToolResult) => void
}

export function call(name: string, args: unknown = {}, id = `call_${name}`): RunnableCall {
  return { id, name, arguments: typeof args === 'string' ? args : JSON.stringify(args) }
}

/** A batch with all its reports, in order. */
export function start(calls: RunnableCall[], tools: readonly ToolEntry[], more: Partial<BatchSettings> = {}) {
  const results: [string, ToolResult][] = []
  const progress: unknown[] = []
  const simulated = new SimulatedClock()
  let ended = (): void => undefined
  const done = new Promise<void>((resolve) => {
    ended = resolve
  })
  const { concurrency = 8, defaultTimeoutMs = 0, maxResultChars = 1000, clock = simulated } = more
  const { abort = new CallAbort(), context, onStart } = more
  const { onProgress = (...of) => progress.push(of), onResult = (...of) => results.push(of) } = more
  const batch = new ToolBatch({ tools: createToolSet(tools) } as never, {
    abort,
    self: {} as never,
    parent: {} as never,
    context: {
      runId: 'run',
      sessionId: 'session',
      batchNumber: 1,
      calls: calls.map((one) => ({ ...one, started: true })),
      config: {
        toolCalls: { concurrency, timeoutMs: defaultTimeoutMs, maxResultChars },
        guardrails: { terminalDelegation: null },
      },
      features: { resultShields: false },
    } as never,
    runtime: {
      clock,
      time: clock,
      binding: { context },
      isHalted: false,
      steps: { start: (_owner: unknown, { callId }: { callId: string }) => onStart?.(callId) },
      emit: (event: EmittedEvent) => {
        if (event.type === 'tool_progress') onProgress(event.callId, event.name, event.progress)
      },
      waitUntilHeld: () => undefined,
    } as never,
    sendBack: (event: AgentMachineEvent) => {
      if (event.type === 'TOOL_RESULT') onResult(event.callId, event.result)
      if (event.type === 'BATCH_DONE') ended()
    },
  })
  batch.startCalls()
  const stop = (reason?: unknown): void => {
    abort.abort(reason)
    batch.stop()
    ended()
  }
  return { done, results, progress, clock: simulated, abort: stop }
}

export async function runOne(
  args: unknown,
  tool: ToolEntry & { name: string },
  more: Partial<BatchSettings> = {},
): Promise<ToolResult> {
  const { done, results } = start([call(tool.name, args)], [tool], more)
  await done
  expect(results).toHaveLength(1)
  const result = results[0]?.[1]
  if (!result) throw new Error('No result was reported.')
  return result
}

/** Runs all work that waits only for promises. */
export const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
