// What the sessions of the kill test do: the same for every host, and a function of what is in their history alone.
import { createAgent, defineAgents, defineTool, openaiChat } from '../../dist/src/index.js'
import { postgresStore } from '../../dist/src/stores/postgres/index.js'

/** Payments of each session, one a step: none may come twice. */
export const payments = 3

/** Every fifth session asks a person before its second payment. */
export const asks = (session) => Number(/\d+$/.exec(session)?.[0]) % 5 === 0

/** What the model says next: the number of results in the history is the step. */
export function turn({ body }) {
  const results = body.messages.filter(({ role }) => role === 'tool').length
  const session = body.messages.findLast(({ role }) => role === 'user')?.content ?? ''
  if (session.startsWith('hang')) return { text: 'Never.', hang: true }
  if (results >= payments) return { text: 'All is paid.' }
  const name = results === 1 && asks(session) ? 'sign' : 'pay'
  return { toolCalls: [{ id: `call-${results}`, name, arguments: { session, n: results } }] }
}

/** A payment: told when it begins, and once it has had its effect; the connection tells when the process is gone. */
async function pay({ session, n }, ledger) {
  const response = await fetch(`${ledger}/pay/${session}/${n}/${process.pid}`, { method: 'POST' })
  return response.text()
}

export function agentsOf({ postgres, model: baseURL, ledger, version = '2', accepts = ['2'] }) {
  const store = postgresStore({ connectionString: postgres })
  const schema = {
    type: 'object',
    properties: { session: { type: 'string' }, n: { type: 'number' } },
    required: ['session', 'n'],
  }
  const tool = (name, more = {}) =>
    defineTool({ name, description: 'Pays.', input: schema, execute: (input) => pay(input, ledger), ...more })
  const agent = createAgent({
    model: openaiChat({ model: 'rehearsed', baseURL, apiKey: 'none' }),
    store,
    tools: [tool('pay'), tool('sign', { needsApproval: true })],
    guardrails: { maxRepeatedToolSteps: 100 },
    retry: { baseDelayMs: 50 },
  })
  return { store, agent, agents: defineAgents({ payer: { agent, version, accepts } }) }
}
