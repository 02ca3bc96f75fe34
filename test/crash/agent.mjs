import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { createAgent, defineTool, openaiChat, ToolError } from 'statewright'
import { traits } from './script.mjs'

/** The actual effects of the tools: one line per execution, written before it returns. */
export const effectsFile = (dir) => join(dir, 'effects.jsonl')

/**
 * The agent of every process. `strike(on, when, place)` is called around each effect and may kill the process
 * there.
 */
export function createCrashAgent({ dir, baseURL, store, strike = () => undefined }) {
  const tool = ([name, { readOnly, idempotent, needsApproval, chars = 20, fails }]) =>
    defineTool({
      name,
      description: `The tool ${name}.`,
      input: { type: 'object' },
      readOnly: readOnly ?? false,
      idempotent: idempotent ?? false,
      needsApproval: needsApproval ?? false,
      execute: async ({ ms }, { callId, idempotencyKey }) => {
        if (ms > 0) await wait(ms)
        strike('effect', 'before', { callId })
        appendFileSync(effectsFile(dir), `${JSON.stringify({ callId, idempotencyKey, name })}\n`)
        strike('effect', 'after', { callId })
        if (ms > 0) await wait(ms)
        if (fails) throw new ToolError('failed', fails)
        return `${name} did ${callId}. `.repeat(Math.ceil(chars / 20))
      },
    })
  return createAgent({
    model: openaiChat({ model: 'scripted', baseURL, apiKey: 'none' }),
    instructions: 'You are a careful accountant.',
    tools: Object.entries(traits).map(tool),
    prices: { scripted: { inputPerMillion: 1, outputPerMillion: 2 } },
    retry: { baseDelayMs: 4 },
    toolCalls: { maxResultChars: 200_000 },
    store,
  })
}
