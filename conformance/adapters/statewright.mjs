// Statewright as built here.
import { z } from 'zod'
import { createAgent, createSession, defineTool, openaiChat } from '../../dist/src/index.js'
import { memoryStore } from '../../dist/src/stores/index.js'

const toSchema = (fields) =>
  z.object(Object.fromEntries(Object.keys(fields).map((name) => [name, z.string()])))

export function open({ baseURL, column, tools, limits }) {
  const agent = createAgent({
    model: openaiChat({ model: 'scripted', baseURL, apiKey: 'none' }),
    tools: tools.map(({ name, description, fields, execute }) =>
      defineTool({ name, description, input: toSchema(fields), execute }),
    ),
    limits: {
      ...(limits.steps && { maxSteps: limits.steps }),
      ...(limits.tokens && { tokenBudget: limits.tokens }),
    },
    ...(limits.idleMs && { streamIdleMs: limits.idleMs }),
    ...(column === 'documented' && { store: memoryStore() }),
  })
  const session = createSession('conformance')
  return {
    async say(text, { signal } = {}) {
      const run = agent.run(text, { session, signal })
      const warnings = []
      run.events$.subscribe((event) => {
        if (event.type === 'warning') warnings.push(event.code ?? event.message)
      })
      const { state, reason, output, usage, error } = await run.result
      return {
        text: output ?? '',
        ok: state === 'COMPLETED' && reason === 'end_turn',
        ended: `${state}, ${reason}${error ? `: ${error.message}` : ''}`,
        usage: {
          input: usage.inputTokens,
          output: usage.outputTokens,
          unknown: usage.estimated || warnings.includes('usage_estimated'),
        },
      }
    },
  }
}
