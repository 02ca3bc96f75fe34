// LangChain's agent, which is a LangGraph graph, on ChatOpenAI. One retry in both columns: its six take minutes. By default the caller keeps the messages of a run that ended; the
// documented way is a checkpointer with a thread, and a middleware that limits the calls of the model.
import { ChatOpenAI } from '@langchain/openai'
import { createAgent, modelCallLimitMiddleware, tool } from 'langchain'
import { MemorySaver } from '@langchain/langgraph'
import { toSchema } from './schema.mjs'

function usageOf(messages) {
  const told = messages.flatMap((message) => (message.getType() === 'ai' ? [message.usage_metadata] : []))
  if (told.length === 0) return undefined
  const sum = (key) => told.reduce((total, usage) => total + (usage?.[key] ?? Number.NaN), 0)
  return { input: sum('input_tokens'), output: sum('output_tokens') }
}

export function open({ baseURL, column, tools, limits }) {
  const isDocumented = column === 'documented'
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
      checkpointer: new MemorySaver(),
      middleware: limits.steps
        ? [modelCallLimitMiddleware({ runLimit: limits.steps, exitBehavior: 'end' })]
        : [],
    }),
  })
  const config = { configurable: { thread_id: '1' } }
  let kept = []
  return {
    async say(text, { signal } = {}) {
      const asked = { role: 'user', content: text }
      const before = isDocumented
        ? ((await agent.getState(config)).values.messages ?? []).length
        : kept.length
      const input = { messages: isDocumented ? [asked] : [...kept, asked] }
      let state
      let error
      try {
        const given = { ...(isDocumented && config), signal, streamMode: ['messages', 'values'] }
        for await (const [mode, value] of await agent.stream(input, given))
          if (mode === 'values') state = value
      } catch (thrown) {
        error = thrown
      }
      if (isDocumented) state = (await agent.getState(config)).values
      else if (error) kept = input.messages
      else kept = state.messages
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
      }
    },
  }
}
