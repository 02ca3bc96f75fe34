// LangChain's agent, which is a LangGraph graph, on ChatOpenAI. Both variants use one retry, because the default of six takes
// minutes. By default the caller stores the messages of completed runs. The documented variant uses a checkpointer with a thread,
// and a middleware that limits model calls.
import { ChatOpenAI } from '@langchain/openai'
import { createAgent, humanInTheLoopMiddleware, modelCallLimitMiddleware, tool } from 'langchain'
import { Command, MemorySaver } from '@langchain/langgraph'
import { fromText, toText, usageOf } from './langchain-parts.mjs'
import { toSchema } from './schema.mjs'
import { facts } from '../facts.mjs'

export const { variants } = facts.langchain
export { openStored } from './langchain-stored.mjs'

export function open({ baseURL, variant, tools, limits, saved }) {
  const isDocumented = variant === 'documented'
  const checkpointer = new MemorySaver()
  if (saved) Object.assign(checkpointer, JSON.parse(saved, fromText))
  const asking = tools
    .filter(({ asks }) => asks)
    .map(({ name }) => [name, { allowedDecisions: ['approve', 'reject'] }])
  const agent = createAgent({
    model: new ChatOpenAI({
      model: 'scripted',
      apiKey: 'none',
      maxRetries: 1,
      configuration: { baseURL },
    }),
    tools: tools.map(({ name, description, fields, execute }) =>
      tool((input, config) => execute(input, { signal: config?.signal }), {
        name,
        description,
        schema: toSchema(fields),
      }),
    ),
    ...(isDocumented && {
      checkpointer,
      middleware: [
        ...(limits.steps ? [modelCallLimitMiddleware({ runLimit: limits.steps, exitBehavior: 'end' })] : []),
        ...(asking.length > 0 ? [humanInTheLoopMiddleware({ interruptOn: Object.fromEntries(asking) })] : []),
      ],
    }),
  })
  return converse({ agent, isDocumented, limits, checkpointer }, thread)
}

const thread = { configurable: { thread_id: '1' } }

/** A conversation from a checkpoint, or from the latest checkpoint of the thread. */
function converse(setup, from) {
  const { agent, isDocumented, limits, checkpointer } = setup
  let at = from
  let transcript = []
  const go = async (input, before, { signal } = {}) => {
    let state
    let error
    let interrupts = []
    try {
      const timeout = limits.deadlineMs && { timeout: limits.deadlineMs }
      const settings = { ...(isDocumented && at), ...timeout, signal, streamMode: ['messages', 'values'] }
      for await (const [mode, value] of await agent.stream(input, settings))
        if (mode === 'values') state = value
    } catch (thrown) {
      error = thrown
    }
    if (isDocumented) {
      const snapshot = await agent.getState(thread)
      if (at !== thread) at = snapshot.config
      state = snapshot.values
      interrupts = snapshot.tasks.flatMap((task) => task.interrupts)
    }
    if (!isDocumented && error) transcript = input.messages
    else if (!isDocumented) transcript = state.messages
    const own = (isDocumented || !error ? (state?.messages ?? []) : [])
      .slice(before)
      .filter((message) => message.getType)
    const last = own.at(-1)
    const finish = last?.response_metadata?.finish_reason
    return {
      text: !error && last?.getType() === 'ai' ? last.text : '',
      ok: !error && last?.getType() === 'ai' && (finish ?? 'stop') === 'stop',
      ended: error
        ? `${error.name}: ${error.message}`
        : `finish_reason ${finish}, ${String(last?.text).slice(0, 60)}`,
      usage: usageOf(own),
      pending: interrupts.length > 0 ? (last?.tool_calls ?? []).map(({ id }) => ({ id })) : [],
    }
  }
  const messagesOf = async () => (await agent.getState(at)).values.messages ?? []
  return {
    async say(text, options) {
      const message = { role: 'user', content: text }
      const before = isDocumented ? await messagesOf() : transcript
      return go({ messages: isDocumented ? [message] : [...transcript, message] }, before.length, options)
    },
    async answer(answers) {
      const decisions = Object.values(answers).map((is) => ({ type: is ? 'approve' : 'reject' }))
      return go(new Command({ resume: { decisions } }), (await messagesOf()).length)
    },
    // Follows the time-travel page, where each fork continues from the checkpoint.
    async fork() {
      at = (await agent.getState(at)).config
      return converse(setup, at)
    },
    save: () => JSON.stringify({ storage: checkpointer.storage, writes: checkpointer.writes }, toText),
  }
}
