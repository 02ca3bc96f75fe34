import type { ModelResponse } from '../../machines/agent/model-response.js'
import {
  type AgentOptions,
  createAgent,
  defineShield,
  defineTool,
  type Message,
  memoryStore,
  type ModelProvider,
  piiShield,
} from '../../src/index.js'

/** Shields that change each part of a run. */
export const shieldings = {
  'no shield': {},
  'redacted input': { input: [piiShield()] },
  'other input': {
    input: [defineShield({ name: 'other', check: () => ({ action: 'redact', content: 'Something.' }) })],
  },
  'redacted arguments': { toolInput: [piiShield()] },
  'checked results and answers': { toolOutput: [piiShield()], output: [piiShield()] },
} satisfies Record<string, AgentOptions['shields']>

export type Shielding = keyof typeof shieldings

const lastTurn = (messages: readonly Message[]): readonly Message[] =>
  messages.slice(messages.findLastIndex(({ role }) => role === 'user') + 1)

/** An agent that pays twice in each turn, with an approval for each payment and equal arguments. */
export function paying({
  shielding = 'no shield',
  ids = () => 'call_0',
}: {
  shielding?: Shielding
  /** The call id in the request with this number. */
  ids?: (request: number) => string
} = {}) {
  const store = memoryStore()
  const payments: { sessionId: string; callId: string; idempotencyKey: string }[] = []
  let requests = 0
  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    input: { type: 'object' },
    needsApproval: true,
    execute: (_input, { sessionId, callId, idempotencyKey }) =>
      `payment ${payments.push({ sessionId, callId, idempotencyKey })}`,
  })
  const model: ModelProvider = {
    provider: 'scripted',
    model: 'scripted',
    request: ({ messages }) => {
      requests += 1
      const paid = lastTurn(messages).filter(({ role }) => role === 'tool').length
      const call = { name: 'pay', arguments: '{"to":"ann@example.com","amount":1}' }
      const response: ModelResponse = {
        text: paid === 2 ? 'Done.' : '',
        reasoning: '',
        refusal: null,
        toolCalls: paid === 2 ? [] : [{ id: ids(requests), type: 'function', function: call }],
        finishReason: paid === 2 ? 'stop' : 'tool_calls',
        complete: true,
        usage: null,
        model: null,
      }
      return Promise.resolve(response)
    },
  }
  const options = { model, store, tools: [pay], prices: null, shields: shieldings[shielding] }
  return {
    agent: createAgent(options as AgentOptions),
    store,
    /** Whether the session has no lease owner. */
    isFree: () => store.get('c')?.holder == null,
    payments,
    get requests() {
      return requests
    },
  }
}
