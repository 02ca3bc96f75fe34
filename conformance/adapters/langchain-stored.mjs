// LangChain's agent with its checkpoints in a file. Another process continues with an invocation without input, as the page on
// durable execution describes. The saver is LangChain's `MemorySaver`, whose content is written after each change.
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ChatOpenAI } from '@langchain/openai'
import { Command, MemorySaver } from '@langchain/langgraph'
import { createAgent, humanInTheLoopMiddleware, tool } from 'langchain'
import { fromText, toText } from './langchain-parts.mjs'
import { toSchema } from './schema.mjs'

class FileSaver extends MemorySaver {
  constructor(file, writing) {
    super()
    this.file = file
    this.writing = writing
    if (existsSync(file)) Object.assign(this, JSON.parse(readFileSync(file, 'utf8'), fromText))
  }

  async put(...args) {
    const result = await super.put(...args)
    this.save()
    return result
  }

  async putWrites(...args) {
    await super.putWrites(...args)
    this.save()
  }

  save() {
    this.writing(() => {
      writeFileSync(
        `${this.file}.new`,
        JSON.stringify({ storage: this.storage, writes: this.writes }, toText),
      )
      renameSync(`${this.file}.new`, this.file)
    })
  }
}

export function openStored({ baseURL, folder, tools, writing }) {
  const asking = tools.filter(({ asks }) => asks)
  const decisions = ({ name }) => [name, { allowedDecisions: ['approve', 'reject'] }]
  const agent = createAgent({
    model: new ChatOpenAI({ model: 'scripted', apiKey: 'none', maxRetries: 1, configuration: { baseURL } }),
    tools: tools.map(({ name, description, fields, execute }) =>
      tool((input) => execute(input), { name, description, schema: toSchema(fields) }),
    ),
    checkpointer: new FileSaver(join(folder, 'checkpoints.json'), writing),
    middleware:
      asking.length > 0
        ? [humanInTheLoopMiddleware({ interruptOn: Object.fromEntries(asking.map(decisions)) })]
        : [],
  })
  // Writes a checkpoint before the next step starts.
  const config = { configurable: { thread_id: '1' }, durability: 'sync' }
  /** The calls that wait for a person, in the order of their decisions. */
  const pendingOf = ({ tasks }) =>
    tasks.flatMap(({ interrupts }) => interrupts.flatMap(({ value }) => value.actionRequests))
  const go = async (input) => {
    try {
      let messages = []
      for await (const [mode, value] of await agent.stream(input, {
        ...config,
        streamMode: ['messages', 'values'],
      }))
        if (mode === 'values' && value.messages) messages = value.messages
      const pending = pendingOf(await agent.getState(config))
      if (pending.length > 0) return { text: '', ok: false, ended: 'a person is asked', pending }
      return { text: messages.at(-1).text, ok: messages.at(-1).getType() === 'ai', ended: 'end' }
    } catch (error) {
      return { text: '', ok: false, ended: `${error.name}: ${error.message}` }
    }
  }
  const start = (text) => go({ messages: [{ role: 'user', content: text }] })
  return {
    start,
    approve: (pending) =>
      go(new Command({ resume: { decisions: pending.map(() => ({ type: 'approve' })) } })),
    async goOn() {
      const state = await agent.getState(config)
      const pending = pendingOf(state)
      if (pending.length > 0) return { text: '', ok: false, ended: 'a person is asked', pending }
      return state.values.messages?.length > 0 ? go(null) : start('Go.')
    },
  }
}
