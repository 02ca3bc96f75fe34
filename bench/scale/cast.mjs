// The sessions of the simulation. Some ask a person before they pay. The others work step after step on a slow model.
import { setTimeout as sleep } from 'node:timers/promises'
import { createAgent, defineAgents, defineTool } from '../../dist/src/index.js'
import { call, createAnswer } from '../answers.mjs'

const usage = {
  inputTokens: 900,
  outputTokens: 60,
  totalTokens: 960,
  cachedInputTokens: 0,
  reasoningTokens: 0,
}
const answer = (text, calls) => createAnswer(text, calls, { usage, model: 'scripted' })
const tool = (name, more) =>
  defineTool({
    name,
    description: 'One of two things that the sessions do.',
    input: { type: 'object', properties: { at: { type: 'number' } } },
    execute: ({ at }) => `What was found at ${Number(at)}: ${'a line of text, '.repeat(30)}`,
    ...more,
  })

/**
 * `pace.waitMs` is the range of the model's response times. `pace.isOver` makes the next answer the last. `onRequest` receives the
 * user's text of each request.
 */
export function agentsOf(store, pace, onRequest) {
  const model = {
    provider: 'simulated',
    model: 'scripted',
    request: async ({ messages }) => {
      const text = messages.find(({ role }) => role === 'user')?.content ?? ''
      const step = messages.filter(({ role }) => role === 'assistant').length
      onRequest(text, step)
      if (text.startsWith('parked')) return step === 0 ? answer('', [call('pay', 0)]) : answer('Paid.')
      const [from, to] = pace.waitMs
      if (to > 0) await sleep(from + Math.random() * (to - from))
      return pace.isOver ? answer('Done.') : answer('', [call('look', step)])
    },
  }
  const agent = createAgent({
    model,
    store,
    tools: [tool('look', { readOnly: true }), tool('pay', { needsApproval: true })],
    instructions: 'You look, and you pay what is due.',
    prices: null,
    limits: { maxSteps: 10_000 },
  })
  return { agent, agents: defineAgents({ worker: agent }) }
}
