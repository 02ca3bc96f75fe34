// A run that calls a tool which asks, and that ends itself, as by kill -9, once its log has so many records. It answers what is
// asked itself. Arguments: the module of agents, a folder, the revision of the server, the command of the server, the records.
const [url, folder, era, script, records] = process.argv.slice(2)
const { createAgent, fileStore, mcpTools } = await import(url)

const store = fileStore({ dir: `${folder}/store` })
const watched = {
  ...store,
  append: (lease, added, ...more) => {
    const appended = store.append(lease, added, ...more)
    if (added.at(-1).seq >= Number(records)) process.kill(process.pid, 'SIGKILL')
    return appended
  },
}
for (const name of ['acquire', 'renew', 'renewAll', 'release', 'read', 'get', 'list', 'delete', 'close'])
  if (store[name]) watched[name] = store[name].bind(store)
watched.inbox = store.inbox

const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2, cachedInputTokens: 0, reasoningTokens: 0 }
const model = {
  provider: 'played',
  model: 'played-1',
  request: ({ messages }) => {
    const isDone = messages.at(-1).role === 'tool'
    const toolCalls = isDone
      ? []
      : [{ id: 'a', type: 'function', function: { name: 'airline_book', arguments: '{}' } }]
    const rest = { reasoning: '', refusal: null, complete: true, usage, model: 'played-1' }
    return Promise.resolve({
      ...rest,
      text: isDone ? 'Done.' : '',
      toolCalls,
      finishReason: isDone ? 'stop' : 'tool_calls',
    })
  },
}
const server = await mcpTools({
  command: process.execPath,
  args: [script, era],
  env: { JOURNAL: `${folder}/journal` },
  name: 'airline',
})
const agent = createAgent({
  model,
  tools: [server],
  store: watched,
  toolCalls: { onInterrupted: 'approval' },
})
const run = agent.run('Go.', { session: 's' })
const { pending = [] } = await run.result
for (const call of pending) run.addToolOutput(call, { action: 'accept', content: { seat: '12A' } })
await run.result
await server.close()
