// An agent whose tool is a server task. It exits, as by kill -9, once its session's log has the given number
// of records.
import { die, watchAppends } from './watch-appends.mjs'

const [agentsUrl, dir, serverUrl, session, records] = process.argv.slice(2)
const { createAgent, createOneCallModel, fileStore, mcpTools, runSession } = await import(agentsUrl)

const store = watchAppends(fileStore({ dir }), (_, seq) => {
  if (seq >= Number(records)) die()
})
const web = await mcpTools({ url: serverUrl, name: 'web' })
const model = createOneCallModel('web_go', ({ content }) => content)
const agent = createAgent({ model, store, tools: [web], toolCalls: { onInterrupted: 'approval' } })
const rest = await runSession(agent, { session, input: 'Go.' })
process.stdout.write(JSON.stringify(rest))
await web.close()
store.close()
