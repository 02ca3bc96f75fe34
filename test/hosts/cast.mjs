// The sessions' behavior in the host tests. It is the same for every host and depends only on the history.
import { createAgent, defineAgents, defineTool, openaiChat } from '../../dist/src/index.js'
import { postgresStore } from '../../dist/src/stores/postgres/index.js'
import { pointOf } from './points.mjs'

/** Payments per session, one per step. Each must happen at most once. */
export const payments = 3

/** Every fifth session asks a person before its second payment. */
export const asks = (session) => Number(/\d+$/.exec(session)?.[0]) % 5 === 0

/** The model's next answer. The number of results in the history is the step. */
export function turn({ body }) {
  const results = body.messages.filter(({ role }) => role === 'tool').length
  const session = body.messages.findLast(({ role }) => role === 'user')?.content ?? ''
  if (session.startsWith('hang')) return { text: 'Never.', hang: true }
  const point = pointOf(session)
  // Long enough for a kill or a shutdown during it.
  const delayMs = point === 'asked' ? 300 : /^(leaving|left)$/.test(point) && results === 0 ? 1500 : undefined
  if (results >= payments) return { text: 'All is paid.' }
  const name = results === 1 && asks(session) ? 'sign' : 'pay'
  return { toolCalls: [{ id: `call-${results}`, name, arguments: { session, n: results } }], delayMs }
}

/** A payment. It reports its start and its effect. The closed connection reports the process's death. */
async function pay({ session, n }, ledger, onBegun) {
  const paying = fetch(`${ledger}/pay/${session}/${n}/${process.pid}`, { method: 'POST' })
  onBegun?.(session)
  return (await paying).text()
}

/** `strikes` comes from points.mjs and kills this process at a point. */
export function agentsOf({ postgres, model: baseURL, ledger, version = '2', accepts = ['2'], strikes }) {
  const base = postgresStore({ connectionString: postgres })
  const store = strikes ? strikes.store(base) : base
  const schema = {
    type: 'object',
    properties: { session: { type: 'string' }, n: { type: 'number' } },
    required: ['session', 'n'],
  }
  // The ledger has received it by then but has not answered.
  const onBegun = strikes && ((session) => setTimeout(() => strikes.at(session, 'effect'), 50))
  const tool = (name, more = {}) =>
    defineTool({
      name,
      description: 'Pays.',
      input: schema,
      execute: (input) => pay(input, ledger, onBegun),
      ...more,
    })
  const model = openaiChat({ model: 'rehearsed', baseURL, apiKey: 'none' })
  const agent = createAgent({
    model: strikes ? strikes.model(model) : model,
    store,
    tools: [tool('pay'), tool('sign', { needsApproval: true })],
    guardrails: { maxRepeatedToolSteps: 100 },
    retry: { baseDelayMs: 50 },
  })
  return { store, agent, agents: defineAgents({ payer: { agent, version, accepts } }) }
}
