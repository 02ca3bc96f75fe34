// Strands' agent with a session manager, and its checkpoints at cycle boundaries (`checkpointing`, experimental). Another process
// continues from the last checkpoint, as the comment on `Checkpoint` describes. The storage is a custom one that implements the
// storage interface and writes immediately.
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Agent, SessionManager, tool } from '@strands-agents/sdk'
import { OpenAIModel } from '@strands-agents/sdk/models/openai'
import { toSchema } from './schema.mjs'

export function openStored({ baseURL, folder, tools, writing }) {
  const state = join(folder, 'state')
  mkdirSync(state, { recursive: true })
  const nameOf = (key) => join(state, encodeURIComponent(key))
  const write = (key, data) =>
    writing(() => {
      writeFileSync(`${nameOf(key)}.new`, data)
      renameSync(`${nameOf(key)}.new`, nameOf(key))
    })
  const read = (key) => (existsSync(nameOf(key)) ? readFileSync(nameOf(key)) : null)
  const storage = {
    write: async (key, data) => write(key, data),
    read: async (key) => read(key),
    delete: async (key) => rmSync(nameOf(key), { force: true }),
    list: async () => [],
  }
  const agent = new Agent({
    model: new OpenAIModel({
      api: 'chat',
      apiKey: 'none',
      modelId: 'scripted',
      clientConfig: { baseURL },
    }),
    tools: tools.map(({ name, description, fields, execute }) =>
      tool({ name, description, inputSchema: toSchema(fields), callback: (input) => execute(input) }),
    ),
    sessionManager: new SessionManager({ sessionId: 'conformance', storage }),
    checkpointing: true,
    printer: false,
  })
  const go = async (input) => {
    try {
      let result = await agent.invoke(input)
      while (result.stopReason === 'checkpoint') {
        const checkpoint = result.checkpoint.toJSON()
        write('checkpoint', JSON.stringify(checkpoint))
        result = await agent.invoke({ checkpointResume: { checkpoint } })
      }
      const { stopReason } = result
      return {
        text: result.toString().trim(),
        ok: stopReason === 'endTurn',
        ended: `stopReason ${stopReason}`,
      }
    } catch (error) {
      return { text: '', ok: false, ended: `${error.name}: ${error.message}` }
    }
  }
  return {
    start: (text) => go(text),
    async goOn() {
      const checkpoint = read('checkpoint')
      if (checkpoint) return go({ checkpointResume: { checkpoint: JSON.parse(checkpoint) } })
      // Before the first checkpoint, the session has at most the user's message.
      await agent.initialize()
      return agent.messages.length > 0 ? go([]) : go('Go.')
    },
  }
}
