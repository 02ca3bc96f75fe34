// Strands' agent, which keeps the conversation. The documented way sets `limits` where a case has some.
import { Agent, tool } from '@strands-agents/sdk'
import { OpenAIModel } from '@strands-agents/sdk/models/openai'
import { toSchema } from './schema.mjs'

export function open({ baseURL, tools, limits }) {
  const agent = new Agent({
    model: new OpenAIModel({ api: 'chat', apiKey: 'none', modelId: 'scripted', clientConfig: { baseURL } }),
    tools: tools.map(({ name, description, fields, execute }) =>
      tool({
        name,
        description,
        inputSchema: toSchema(fields),
        callback: (input, context) =>
          execute(input, { signal: context?.agent?.cancelSignal ?? context?.cancelSignal }),
      }),
    ),
    printer: false,
  })
  return {
    async say(text, { signal } = {}) {
      let result
      let error
      try {
        result = await agent.invoke(text, {
          cancelSignal: signal,
          ...((limits.steps || limits.tokens) && {
            limits: {
              ...(limits.steps && { turns: limits.steps }),
              ...(limits.tokens && { totalTokens: limits.tokens }),
            },
          }),
        })
      } catch (thrown) {
        error = thrown
      }
      const usage = result?.metrics?.latestAgentInvocation?.usage ?? result?.metrics?.accumulatedUsage
      return {
        text: result?.toString().trim() ?? '',
        ok: result?.stopReason === 'endTurn',
        ended: error ? `${error.name}: ${error.message}` : `stopReason ${result.stopReason}`,
        usage: usage && { input: usage.inputTokens, output: usage.outputTokens },
      }
    },
  }
}
