// One of several processes that serve the same agents from one folder. It exits, as by kill -9, once a
// session's log has the number of records that the folder's `kill` file sets. The file contains `SESSION
// RECORDS`, and the first process to reach that count removes it.
import { appendFileSync, existsSync, readFileSync, renameSync } from 'node:fs'
import { createServer } from 'node:http'
import { createRequestListener } from '@remix-run/node-fetch-server'
import { die, watchAppends } from '../watch-appends.mjs'

const [url, folder] = process.argv.slice(2)
const { createAgent, defineAgents, defineTool, fileStore, mcpServer } = await import(url)

const ledger = `${folder}/ledger`
const store = fileStore({ dir: `${folder}/store` })

function dieIfTold(session, head) {
  const order = `${folder}/kill`
  if (!existsSync(order)) return
  const [wanted, records] = readFileSync(order, 'utf8').split(' ')
  if (session !== wanted || head < Number(records)) return
  try {
    renameSync(order, `${order}.done`)
  } catch {
    return
  }
  die()
}

const watched = watchAppends(store, dieIfTold)

const tools = [
  defineTool({
    name: 'look',
    description: 'Reads the invoice.',
    input: { type: 'object' },
    readOnly: true,
    execute: () => 'invoice 17: 5 EUR',
  }),
  defineTool({
    name: 'pay',
    description: 'Pays the invoice.',
    input: { type: 'object' },
    needsApproval: true,
    execute: (_, { sessionId }) => {
      appendFileSync(ledger, `${sessionId}\n`)
      return 'paid 5 EUR'
    },
  }),
]

const usage = { inputTokens: 10, outputTokens: 5, totalTokens: 15, cachedInputTokens: 0, reasoningTokens: 0 }
const model = {
  provider: 'script',
  model: 'script-1',
  request: ({ messages }) => {
    const results = messages.filter(({ role }) => role === 'tool')
    const next = ['look', 'pay'][results.length]
    const toolCalls = next
      ? [{ id: `call_${results.length}`, type: 'function', function: { name: next, arguments: '{}' } }]
      : []
    const text = next ? '' : `Done: ${results.map(({ content }) => content).join(', ')}.`
    const finishReason = next ? 'tool_calls' : 'stop'
    return Promise.resolve({
      text,
      reasoning: '',
      refusal: null,
      toolCalls,
      finishReason,
      complete: true,
      usage,
      model: 'script-1',
    })
  },
}

const agents = defineAgents({
  clerk: createAgent({ model, store: watched, tools, toolCalls: { onInterrupted: 'approval' } }),
})
const handler = mcpServer({ agents, authorize: 'none', pollMs: 10 })
const server = createServer(createRequestListener((request) => handler(request)))
server.listen(0, '127.0.0.1', () => process.stdout.write(`${server.address().port}\n`))
