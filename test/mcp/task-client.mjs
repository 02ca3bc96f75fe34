// An agent whose tool is a task at a server. It ends itself, as by kill -9, once the log of its session has so many records.
const [agentsUrl, dir, serverUrl, session, records] = process.argv.slice(2)
const { createAgent, fileStore, mcpTools, runSession } = await import(agentsUrl)

const store = fileStore({ dir })
const watched = Object.assign(Object.create(store), {
  append: (lease, added, ...more) => {
    const appended = store.append(lease, added, ...more)
    if (added.at(-1).seq >= Number(records)) process.kill(process.pid, 'SIGKILL')
    return appended
  },
})

const usage = { inputTokens: 10, outputTokens: 5, totalTokens: 15, cachedInputTokens: 0, reasoningTokens: 0 }
const model = {
  provider: 'script',
  model: 'script-1',
  request: ({ messages }) => {
    const last = messages.at(-1)
    const isOver = last.role === 'tool'
    const toolCalls = isOver
      ? []
      : [{ id: 'a', type: 'function', function: { name: 'web_go', arguments: '{}' } }]
    const [text, finishReason] = isOver ? [last.content, 'stop'] : ['', 'tool_calls']
    const said = { text, reasoning: '', refusal: null, toolCalls, finishReason, complete: true }
    return Promise.resolve({ ...said, usage, model: 'script-1' })
  },
}

const web = await mcpTools({ url: serverUrl, name: 'web' })
const toolCalls = { onInterrupted: 'approval' }
const agent = createAgent({ model, store: records === 'none' ? store : watched, tools: [web], toolCalls })
const rest = await runSession(agent, { session, input: 'Go.' })
process.stdout.write(JSON.stringify(rest))
await web.close()
store.close()
