// OpenAI Agents on its Chat Completions model. By default the caller stores `result.history`, as the page on running agents does.
// The documented variant uses a session.
import {
  Agent,
  MemorySession,
  OpenAIChatCompletionsModel,
  run,
  RunState,
  setTracingDisabled,
  tool,
} from '@openai/agents'
import OpenAI from 'openai'
import { toSchema } from './schema.mjs'
import { facts } from '../facts.mjs'

export const { variants } = facts.agents

export function open({ baseURL, variant, tools, limits, saved }) {
  setTracingDisabled(true)
  const model = new OpenAIChatCompletionsModel(new OpenAI({ baseURL, apiKey: 'none' }), 'scripted')
  const agent = new Agent({
    name: 'scripted',
    model,
    tools: tools.map(({ name, description, fields, execute, asks, delegate }) =>
      delegate
        ? new Agent({ name, model }).asTool({ toolName: name, toolDescription: description })
        : tool({
            name,
            needsApproval: asks === true,
            description,
            parameters: toSchema(fields),
            execute: (input, _, details) => execute(input, { signal: details?.signal }),
          }),
    ),
  })
  const session = variant === 'documented' ? new MemorySession() : undefined
  let history = []
  let waiting = saved
  const go = async (input, { signal } = {}) => {
    let result
    let error
    let last
    try {
      result = await run(agent, input, {
        stream: true,
        signal,
        session,
        ...(session && { toolNotFoundBehavior: 'return_error_to_model' }),
        ...(limits.steps && { maxTurns: limits.steps }),
      })
      for await (const event of result) {
        if (event.type === 'raw_model_stream_event' && event.data.type === 'response_done')
          last = event.data.response
      }
      await result.completed
      if (!session) history = result.history
    } catch (thrown) {
      error = thrown
    }
    error ??= result?.error
    const usage = result?.runContext?.usage ?? error?.state?.usage
    const finish = last?.providerData?.finish_reason ?? last?.finishReason
    const isWhole = !error && !signal?.aborted && result?.finalOutput !== undefined
    const interruptions = result?.interruptions ?? []
    waiting = interruptions.length > 0 ? result.state.toString() : undefined
    return {
      pending: interruptions.map(({ rawItem }) => ({ id: rawItem.callId })),
      text: result?.finalOutput ?? '',
      ok: isWhole && (finish === undefined || finish === 'stop'),
      ended: error
        ? `${error.name}: ${error.message}`
        : `finalOutput ${JSON.stringify(result?.finalOutput)?.slice(0, 40)}${finish ? `, ${finish}` : ''}`,
      usage: usage && { input: usage.inputTokens, output: usage.outputTokens },
    }
  }
  return {
    say(text, options) {
      const input = session ? text : [...history, { role: 'user', content: text }]
      if (!session) history = input
      return go(input, options)
    },
    async answer(decisions) {
      // Follows the human-in-the-loop page. The caller stores the state as text, and the answering process loads it.
      if (!waiting) throw new Error('no state is stored')
      const state = await RunState.fromString(agent, waiting)
      for (const interruption of state.getInterruptions())
        if (decisions[interruption.rawItem.callId]) state.approve(interruption)
        else state.reject(interruption)
      return go(state)
    },
    save: () => waiting,
  }
}
