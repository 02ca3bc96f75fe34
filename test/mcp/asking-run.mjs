// A run that calls a tool with an elicitation. It exits, as by kill -9, once its log has the given number of
// records. It answers the elicitation. Arguments: the module of agents, a folder, the revision of the server,
// the command of the server, the records.
import { die, watchAppends } from './watch-appends.mjs'

const [url, folder, era, script, records] = process.argv.slice(2)
const { createAgent, createOneCallModel, fileStore, mcpTools } = await import(url)

const store = watchAppends(fileStore({ dir: `${folder}/store` }), (_, seq) => {
  if (seq >= Number(records)) die()
})
const server = await mcpTools({
  command: process.execPath,
  args: [script, era],
  env: { JOURNAL: `${folder}/journal` },
  name: 'airline',
})
const agent = createAgent({
  model: createOneCallModel('airline_book'),
  tools: [server],
  store,
  toolCalls: { onInterrupted: 'approval' },
})
const run = agent.run('Go.', { session: 's' })
const { pending = [] } = await run.result
for (const call of pending) run.addToolOutput(call, { action: 'accept', content: { seat: '12A' } })
await run.result
await server.close()
