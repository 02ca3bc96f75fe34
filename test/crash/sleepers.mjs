import { appendFileSync } from 'node:fs'
import { createAgent, defineAgents, defineTool, sleepUntil } from 'statewright'
import { createBudget } from 'statewright/fleet'
import { effectsFile } from './agent.mjs'

/** The agents' answers and calls, by the number of their earlier answers. */
const scripts = {
  sleeper: ['rest', 'mail', 'rest', null],
  payer: ['mail', null],
}

const usage = {
  inputTokens: 50,
  outputTokens: 50,
  totalTokens: 100,
  cachedInputTokens: 0,
  reasoningTokens: 0,
}

function createModel(script) {
  return {
    provider: 'played',
    model: 'played-1',
    request: async ({ messages }) => {
      await new Promise((resolve) => setTimeout(resolve, 2))
      const number = messages.filter(({ role }) => role === 'assistant').length
      const name = script[number]
      return {
        text: name ? '' : 'Done.',
        reasoning: '',
        refusal: null,
        toolCalls: name ? [{ id: `c${number}`, type: 'function', function: { name, arguments: '{}' } }] : [],
        finishReason: name ? 'tool_calls' : 'stop',
        complete: true,
        usage,
        model: 'played-1',
      }
    },
  }
}

/**
 * The agents of one process. The sleeper's tool sleeps twice. The payer waits for a budget that all payers
 * share.
 */
export function createSleepers({ dir, store, clock, sleepMs, budgetTokens, windowMs }) {
  const input = { type: 'object', properties: {} }
  const rest = defineTool({
    name: 'rest',
    description: 'Rests.',
    input,
    readOnly: true,
    polling: true,
    execute: () => sleepUntil(clock.now() + sleepMs),
  })
  const mail = defineTool({
    name: 'mail',
    description: 'Sends a letter.',
    input,
    execute: (_input, { callId, sessionId }) => {
      appendFileSync(effectsFile(dir), `${JSON.stringify({ callId, session: sessionId })}\n`)
      return 'Sent.'
    },
  })
  const options = { store, clock, prices: null, tools: [rest, mail] }
  const budget = createBudget({
    id: 'payers',
    tokens: budgetTokens,
    per: windowMs,
    onEmpty: 'wait',
    store,
    clock,
  })
  return defineAgents({
    sleeper: createAgent({ ...options, model: createModel(scripts.sleeper) }),
    payer: createAgent({
      ...options,
      model: createModel(scripts.payer),
      sampling: { maxTokens: 60 },
      budgets: [budget],
    }),
  })
}
