// LangChain's agent, which is a LangGraph graph, on ChatOpenAI. Settings: a recursion limit of 10,000 instead of the default, and no
// retries. LangSmith is off unless its variables are set.
import { ChatOpenAI } from '@langchain/openai'
import { createAgent, tool } from 'langchain'
import { z } from 'zod'

export default function ({ baseURL, model, stream, read }) {
  const agent = createAgent({
    model: new ChatOpenAI({ model, apiKey: 'bench', maxRetries: 0, configuration: { baseURL } }),
    tools: [
      tool(read, {
        name: 'read',
        description: 'Reads a file.',
        schema: z.object({ path: z.string(), note: z.string() }),
      }),
    ],
  })
  const input = { messages: [{ role: 'user', content: 'Go.' }] }
  return async () => {
    if (!stream) return (await agent.invoke(input, { recursionLimit: 10_000 })).messages.at(-1).text
    let text = ''
    const pieces = await agent.stream(input, { streamMode: 'messages', recursionLimit: 10_000 })
    for await (const [token, { langgraph_node: node }] of pieces) {
      if (node === 'model_request') text += token.text
    }
    return text
  }
}
