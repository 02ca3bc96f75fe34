// The current build of Statewright.
import { createAgent, createSession, defineTool, openaiChat } from '../../dist/src/index.js'
import { memoryStore } from '../../dist/src/stores/index.js'
import { toSchema } from './schema.mjs'
import { facts } from '../facts.mjs'

export const { variants } = facts.statewright
export { openStored } from './statewright-stored.mjs'

/** Serializes the records of a session, and creates a store from that text. */
const dump = (store) => JSON.stringify(store.read('conformance'))
function restore(saved) {
  const store = memoryStore()
  const lease = store.acquire('conformance', { holder: 'restore', ttlMs: 60_000 })
  store.append(lease, JSON.parse(saved))
  store.release(lease)
  return store
}

export function open({ baseURL, variant, tools, limits, saved }) {
  const store = variant === 'documented' ? (saved ? restore(saved) : memoryStore()) : undefined
  const model = openaiChat({ model: 'scripted', baseURL, apiKey: 'none' })
  const agent = createAgent({
    model,
    tools: tools.map(({ name, description, fields, execute, asks, delegate }) =>
      delegate
        ? createAgent({ model }).asTool({ name, description })
        : defineTool({ name, description, input: toSchema(fields), execute, needsApproval: asks === true }),
    ),
    limits: {
      ...(limits.steps && { maxSteps: limits.steps }),
      ...(limits.tokens && { tokenBudget: limits.tokens }),
      ...(limits.deadlineMs && { timeoutMs: limits.deadlineMs }),
    },
    ...(limits.idleMs && { streamIdleMs: limits.idleMs }),
    ...(store && { store }),
  })
  return converse({ agent, store, session: store ? 'conformance' : createSession('conformance') })
}

function converse({ agent, store, session }) {
  let run
  const rest = async () => {
    const warnings = []
    run.events$.subscribe({
      next: (event) => event.type === 'warning' && warnings.push(event.code ?? event.message),
      error: () => undefined,
    })
    const { state, reason, output, usage, error, pending } = await run.result
    return {
      text: output ?? '',
      ok: state === 'COMPLETED' && reason === 'end_turn',
      ended: `${state}, ${reason}${error ? `: ${error.message}` : ''}`,
      pending: pending?.map(({ callId }) => ({ id: callId })),
      usage: {
        input: usage.inputTokens,
        output: usage.outputTokens,
        unknown: usage.estimated || warnings.includes('usage_estimated'),
      },
    }
  }
  return {
    say(text, { signal } = {}) {
      run = agent.run(text, { session, signal })
      return rest()
    },
    async answer(decisions) {
      run ??= await agent.resume(session)
      for (const [id, isApproved] of Object.entries(decisions))
        if (isApproved) run.approve(id)
        else run.reject(id)
      return rest()
    },
    save: () => dump(store),
    fork: async () => converse({ agent, store, session: await agent.fork(session) }),
  }
}
