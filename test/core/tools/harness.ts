import { SimulatedClock } from 'xstate'
import type { ToolResult } from '../../../machines/agent/batch-calls.js'
import { CallAbort } from '../../../src/core/base/abort.js'
import {
  type RunBatchOptions,
  RunningBatch,
  type RunnableCall,
} from '../../../src/core/tools/running-batch.js'
import { type ToolEntry, createToolSet } from '../../../src/core/tools/tool-set.js'

export function call(name: string, args: unknown = {}, id = `call_${name}`): RunnableCall {
  return { id, name, arguments: typeof args === 'string' ? args : JSON.stringify(args) }
}

/** A batch with all its reports, in order. */
export function start(
  calls: RunnableCall[],
  tools: readonly ToolEntry[],
  more: Partial<RunBatchOptions> = {},
) {
  const results: [string, ToolResult][] = []
  const progress: unknown[] = []
  const clock = new SimulatedClock()
  let ended = (): void => undefined
  const done = new Promise<void>((resolve) => {
    ended = resolve
  })
  const batch = new RunningBatch(calls, {
    tools: createToolSet(tools),
    concurrency: 8,
    defaultTimeoutMs: 0,
    maxResultChars: 1000,
    abort: new CallAbort(),
    clock,
    context: undefined,
    runId: 'run',
    sessionId: 'session',
    batchId: 'run.1',
    onProgress: (callId, name, value) => progress.push([callId, name, value]),
    onResult: (callId, result) => results.push([callId, result]),
    onDone: ended,
    ...more,
  })
  batch.start()
  const stop = (reason?: unknown): void => {
    batch.stop(reason)
    ended()
  }
  return { done, results, progress, clock, abort: stop }
}

export async function runOne(
  args: unknown,
  tool: ToolEntry & { name: string },
  more: Partial<RunBatchOptions> = {},
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
