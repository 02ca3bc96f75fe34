import { z } from 'zod'
import type { ToolResult } from '../../../machines/agent/batch-calls.js'
import { Sleep } from '../../../src/core/tools/tool-outcomes.js'
import { defineTool, type Tool, ToolError } from '../../../src/index.js'

interface Execution {
  resolve(value: string | Sleep): void
  reject(error: Error): void
}

/** The alphabet's tools, with real implementations whose end the test controls. */
export class ToolBench {
  readonly tools: Tool[]
  readonly #running = new Map<string, Execution>()

  constructor() {
    const input = z.object({ n: z.number() })
    const execute = (_: unknown, { callId }: { callId: string }): Promise<string | Sleep> =>
      new Promise((resolve, reject) => {
        this.#running.set(callId, { resolve, reject })
      })
    this.tools = [
      defineTool({ name: 'research', description: 'Stands for a sub-agent.', input, execute }),
      defineTool({ name: 'read', description: 'Reads.', input, execute }),
      defineTool({ name: 'look', description: 'Looks.', input, execute, readOnly: true, idempotent: true }),
      defineTool({ name: 'book', description: 'Books.', input, execute }),
      defineTool({ name: 'govern', description: 'Is decided by a policy.', input, execute }),
      defineTool({ name: 'pledge', description: 'Asks with a time limit.', input, execute }),
      defineTool({ name: 'transfer', description: 'Asks first.', input, execute, needsApproval: true }),
      defineTool({ name: 'lend', description: 'Can have a grant.', input, execute, needsApproval: true }),
      defineTool({ name: 'load_skill', description: 'Loads a skill.', input, execute, readOnly: true }),
      defineTool({ name: 'transfer_to_billing', description: 'Hands over.', input, execute, readOnly: true }),
      defineTool({ name: 'pick', description: 'Runs at the client.', input, client: true }),
    ] as Tool[]
  }

  isRunning(callId: string): boolean {
    return this.#running.has(callId)
  }

  end(callId: string, { status, errorKind, content, wakeAt }: ToolResult): void {
    const execution = this.#running.get(callId)
    this.#running.delete(callId)
    if (wakeAt !== undefined) execution?.resolve(new Sleep(wakeAt))
    else if (status === 'ok') execution?.resolve(content)
    else execution?.reject(new ToolError(errorKind ?? 'failed', content))
  }

  forget(callId: string): void {
    this.#running.delete(callId)
  }

  /** The runner was stopped, so the outcomes of its executions do not matter. */
  clear(): void {
    this.#running.clear()
  }
}
