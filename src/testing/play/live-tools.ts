import type { AgentContext } from '../../../machines/agent/context.js'
import type { ToolResult } from '../../../machines/agent/batch-calls.js'
import { systemClock } from '../../core/base/clock.js'
import type { AgentParts } from '../../core/live/agent-parts.js'
import { getSpeakerTools } from '../../core/live/speaker.js'
import { RunningCall } from '../../core/tools/running-call.js'

/** Carries out the calls of a played run with the agent's own tools, when the run would have. */
export class LiveTools {
  readonly #parts: AgentParts
  readonly #appContext: unknown
  readonly #running = new Map<string, { call: RunningCall; result: Promise<ToolResult | null> }>()

  constructor(parts: AgentParts, appContext: unknown) {
    this.#parts = parts
    this.#appContext = appContext
  }

  /** Starts the calls that the run has started, and stops those that it does not wait for any more. */
  startCalls(context: AgentContext): void {
    const open = context.calls.filter(({ started, result }) => started === true && result === undefined)
    const keys = new Set(open.map(({ id }) => toKey(context, id)))
    for (const [key, { call }] of this.#running) if (!keys.has(key)) this.#stopCall(key, call)
    for (const call of open) {
      const key = toKey(context, call.id)
      const tools = getSpeakerTools(this.#parts.tools, context.speaker)
      const tool = tools.get(call.name)
      // The provider's own calls are part of the answer; sub-agents are played from their own recordings.
      if (this.#running.has(key) || call.hosted || tool?.delegate || tool?.client) continue
      let end: (result: ToolResult | null) => void = () => undefined
      const result = new Promise<ToolResult | null>((resolve) => (end = resolve))
      const { toolCalls } = context.config
      const running = new RunningCall(
        call,
        {
          tools,
          defaultTimeoutMs: toolCalls.timeoutMs,
          maxResultChars: toolCalls.maxResultChars,
          clock: systemClock,
          context: this.#appContext,
          runId: context.runId,
          sessionId: context.sessionId,
          batchId: `${context.runId}.${context.batchNumber}`,
          onProgress: () => undefined,
        },
        { onCallEnd: (_call, ended) => end(ended) },
      )
      this.#running.set(key, { call: running, result })
    }
  }

  /** The result of a call; undefined when it was not executed here. */
  getResult(context: AgentContext, callId: string): Promise<ToolResult | null> | undefined {
    return this.#running.get(toKey(context, callId))?.result
  }

  /** Stops all calls. */
  stopAll(): void {
    for (const [key, { call }] of this.#running) this.#stopCall(key, call)
  }

  #stopCall(key: string, call: RunningCall): void {
    this.#running.delete(key)
    call.stop(new Error('The played run has gone on without this call.'))
  }
}

function toKey({ runId, batchNumber }: AgentContext, callId: string): string {
  return `${runId}.${batchNumber}:${callId}`
}
