// Agents that imitate the suite's fixture tools as far as agents can. They answer, call tools, wait for
// approvals and fail.
import { createServer } from 'node:http'
import { createRequestListener } from '@remix-run/node-fetch-server'
import { createAgent, defineAgents, defineTool, memoryStore } from '../../../dist/src/index.js'
import { mcpServer } from '../../../dist/src/mcp/server/index.js'

const store = memoryStore()
const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2, cachedInputTokens: 0, reasoningTokens: 0 }
const base = { reasoning: '', refusal: null, complete: true, usage, model: 'script' }

/** A model that calls these tools once, then returns a text. */
function script(text, calls = []) {
  const request = ({ messages }) => {
    const isFirst = !messages.some(({ role }) => role === 'tool')
    const toolCalls = (isFirst ? calls : []).map((name, i) => ({
      id: `call_${i}`,
      type: 'function',
      function: { name, arguments: JSON.stringify({ said: messages.at(-1).content }) },
    }))
    const finishReason = toolCalls.length > 0 ? 'tool_calls' : 'stop'
    return Promise.resolve({ ...base, text: toolCalls.length > 0 ? '' : text, toolCalls, finishReason })
  }
  return { provider: 'script', model: 'script', request }
}

/** The answer is the arguments as JSON. */
const greeter = {
  ...script(''),
  request: ({ messages }) => {
    const { name } = JSON.parse(messages.at(-1).content)
    return Promise.resolve({ ...base, text: `Hello, ${name}!`, toolCalls: [], finishReason: 'stop' })
  },
}

const failing = {
  provider: 'script',
  model: 'script',
  request: () => Promise.reject(new Error('It fails.')),
}

const input = { type: 'object', properties: { said: { type: 'string' } } }
const remove = (name) =>
  defineTool({ name, description: 'Deletes.', input, needsApproval: true, execute: () => 'deleted' })
const wait = defineTool({
  name: 'wait',
  description: 'Waits.',
  input,
  execute: ({ said: message }, { signal }) =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => resolve('waited'), JSON.parse(message).seconds * 1000)
      signal.addEventListener('abort', () => {
        clearTimeout(timer)
        reject(signal.reason)
      })
    }),
})

const agents = defineAgents({
  greet: createAgent({ store, model: greeter }),
  slow_compute: createAgent({ store, model: script('Computed.', ['wait']), tools: [wait] }),
  failing_job: createAgent({ store, model: failing, retry: { maxAttempts: 1 } }),
  confirm_delete: createAgent({ store, model: script('Deleted.', ['one']), tools: [remove('one')] }),
  multi_input: createAgent({
    store,
    model: script('Deleted.', ['one', 'two']),
    tools: [remove('one'), remove('two')],
  }),
  test_simple_text: createAgent({ store, model: script('This is a simple text response for testing.') }),
  test_error_handling: createAgent({ store, model: failing, retry: { maxAttempts: 1 } }),
  json_schema_2020_12_tool: createAgent({ store, model: script('Fits.') }),
  test_input_required_result_tampered_state: createAgent({
    store,
    model: script('Deleted.', ['one']),
    tools: [remove('one')],
  }),
})

/** Accepts any arguments, because the suite's tools define their arguments. */
const any = { input: { type: 'object' } }
/** JSON Schema keywords that clients must receive unchanged. */
const schema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: {
    address: {
      $anchor: 'addressDef',
      type: 'object',
      properties: { street: { type: 'string' }, city: { type: 'string' } },
    },
  },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' },
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  // oxlint-disable-next-line unicorn/no-thenable -- a word of JSON Schema
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
}
const handler = mcpServer({
  agents,
  authorize: 'none',
  pollMs: 50,
  onError: () => undefined,
  tools: {
    ...Object.fromEntries(agents.names.map((name) => [name, any])),
    greet: { ...any, task: false },
    json_schema_2020_12_tool: { input: schema },
  },
})
const server = createServer(createRequestListener((request) => handler(request)))
// On a busy machine the suite pauses for longer than Node keeps an idle connection (5 s), and its next
// request would fail.
server.keepAliveTimeout = 120_000
server.listen(0, '127.0.0.1', () => process.stdout.write(`${server.address().port}\n`))
process.once('SIGTERM', () => process.exit(0))
