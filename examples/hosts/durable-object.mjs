// A Cloudflare Worker with one session per Durable Object. POST /order-17 with text starts a session, and GET returns its state.
// In wrangler.jsonc: "durable_objects": { "bindings": [{ "name": "SESSIONS", "class_name": "SessionObject" }] },
// "migrations": [{ "tag": "v1", "new_sqlite_classes": ["SessionObject"] }]
import { DurableObject } from 'cloudflare:workers'
import { createAgent, defineAgents, defineTool, openaiChat, runSession, sleepUntil } from 'statewright'
import { durableObjectStore, wakeSessions } from 'statewright/stores/durable-object'

const waitForPayment = defineTool({
  name: 'wait_for_payment',
  description: 'Waits a moment. Then check the account again.',
  input: { type: 'object', properties: {}, additionalProperties: false },
  polling: true,
  execute: () => sleepUntil(Date.now() + 1_000),
})

export class SessionObject extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env)
    const store = durableObjectStore({ storage: ctx.storage })
    this.store = store
    const model = openaiChat({ model: env.MODEL, baseURL: env.BASE_URL, apiKey: env.API_KEY })
    this.agents = defineAgents({ clerk: createAgent({ model, store, tools: [waitForPayment] }) })
  }

  async fetch(request) {
    const session = new URL(request.url).pathname.slice(1)
    if (request.method === 'GET') return Response.json(this.store.get(session)?.summary ?? null)
    const { state, output, wakeAt } = await runSession(this.agents, { session, input: () => request.text() })
    return Response.json({ state, output, wakeAt })
  }

  // Wakes the sleeping session.
  async alarm() {
    await wakeSessions(this.agents)
  }
}

export default {
  fetch(request, { SESSIONS }) {
    const session = new URL(request.url).pathname
    return SESSIONS.get(SESSIONS.idFromName(session)).fetch(request)
  },
}
