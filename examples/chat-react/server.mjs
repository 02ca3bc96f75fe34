// A chat page with approvals, stop and reload: `npm run chat:react` in the folder of the project, then open the address.
import { createServer } from 'node:http'
import { createRequestListener } from '@remix-run/node-fetch-server'
import { createAgent, defineTool, openaiChat } from 'statewright'
import { startRehearsal } from 'statewright/rehearsal'
import { fileStore } from 'statewright/stores/file'
import { chatHandler } from 'statewright/ui'
import { createServer as createVite } from 'vite'

const transfer = defineTool({
  name: 'transfer',
  description: 'Moves money.',
  input: { type: 'object', properties: { to: { type: 'string' }, amount: { type: 'number' } } },
  needsApproval: true,
  execute: ({ to, amount }) => ({ moved: amount, to }),
})

// A rehearsed model. For a real one, openaiChat({ model: 'gpt-5-mini' }) is enough.
const asks = { text: 'I will.', toolCalls: [{ name: 'transfer', arguments: { to: 'Ann', amount: 20 } }] }
const tells = {
  text: 'That is settled, and here is a word on it. '.repeat(15),
  chunkSize: 4,
  chunkDelayMs: 30,
}
const turns = [({ body }) => (body.messages.at(-1).role === 'tool' ? tells : asks)]
const rehearsal = await startRehearsal({ scenario: { turns, onExhausted: 'loop' } })
const agent = createAgent({
  model: openaiChat({ model: 'rehearsed', baseURL: rehearsal.url, apiKey: 'none' }),
  tools: [transfer],
  store: fileStore({ dir: '.statewright' }),
})

// Every user of this machine may see every chat; a real server checks the user. Other host names are refused.
const chat = createRequestListener(chatHandler({ agent, authorize: 'none' }))
const vite = await createVite({ server: { middlewareMode: true }, appType: 'spa', logLevel: 'warn' })
const server = createServer((request, response) => {
  if (!/^(127\.0\.0\.1|localhost)(:\d+)?$/.test(request.headers.host ?? '')) response.writeHead(403).end()
  else if (request.url?.startsWith('/api/chat')) chat(request, response)
  else vite.middlewares(request, response)
})
server.listen(Number(process.env.PORT ?? 4200), '127.0.0.1', () =>
  console.log(`http://127.0.0.1:${server.address().port}`),
)
