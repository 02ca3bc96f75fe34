// AI SDK: a ToolLoopAgent on the provider for compatible servers. The caller stores the messages, as its pages on memory do. By
// default it stores the messages of completed runs. The documented variant also stores each step in `onStepEnd`.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { isStepCount, tool, ToolLoopAgent } from 'ai'
import { hasSpent, requestsOf, usageOf } from './ai-parts.mjs'
import { toSchema } from './schema.mjs'
import { facts } from '../facts.mjs'

export const { variants } = facts.ai

const describe = (error) => `${error?.name ?? 'Error'}: ${error?.message ?? error}`

export function open({ baseURL, variant, tools, limits, saved }) {
  const isDocumented = variant === 'documented'
  const provider = createOpenAICompatible({
    name: 'scripted',
    baseURL,
    apiKey: 'none',
    ...(isDocumented && { includeUsage: true }),
  })
  const stops = [limits.steps && isStepCount(limits.steps), limits.tokens && hasSpent(limits.tokens)].filter(
    Boolean,
  )
  const agent = new ToolLoopAgent({
    model: provider('scripted'),
    tools: Object.fromEntries(
      tools.map(({ name, description, fields, execute }) => [
        name,
        tool({
          description,
          inputSchema: toSchema(fields),
          execute: (input, { abortSignal }) => execute(input, { signal: abortSignal }),
        }),
      ]),
    ),
    ...(stops.length > 0 && { stopWhen: stops }),
    toolApproval: Object.fromEntries(
      tools.filter(({ asks }) => asks).map(({ name }) => [name, 'user-approval']),
    ),
    ...(isDocumented && { experimental_toolApprovalSecret: 'a secret that only the server has' }),
  })
  const timeout = {
    ...(limits.idleMs && { chunkMs: limits.idleMs }),
    ...(limits.deadlineMs && { totalMs: limits.deadlineMs }),
  }
  let messages = saved ? JSON.parse(saved) : []
  /** Runs the given messages to the end. The result becomes the conversation. */
  const go = async (input, { signal } = {}) => {
    const seen = { text: '', finish: undefined, error: undefined, steps: [], pending: [] }
    const own = []
    try {
      const result = await agent.stream({
        messages: input,
        abortSignal: signal,
        timeout,
        onError: () => {},
        onStepEnd: (step) => void seen.steps.push(step),
      })
      for await (const part of result.stream) {
        if (part.type === 'start-step') seen.text = ''
        if (part.type === 'text-delta') seen.text += part.text
        if (part.type === 'error') seen.error = describe(part.error)
        if (part.type === 'abort') seen.error = 'abort'
        if (part.type === 'tool-approval-request') seen.pending.push({ id: part.toolCall.toolCallId })
        if (part.type === 'finish') {
          seen.finish = part.finishReason
          seen.usage = part.totalUsage
        }
      }
      if (!isDocumented || !seen.error) own.push(...(await result.responseMessages))
    } catch (error) {
      seen.error ??= describe(error)
    }
    if (isDocumented && own.length === 0) own.push(...seen.steps.flatMap((step) => step.response.messages))
    messages = [...input, ...own]
    return {
      text: seen.text,
      ok: !seen.error && seen.finish === 'stop',
      ended: seen.error ?? `finishReason ${seen.finish}`,
      usage: usageOf(seen, isDocumented),
      pending: seen.pending,
    }
  }
  return {
    say(text, options) {
      messages = [...messages, { role: 'user', content: text }]
      return go(messages, options)
    },
    answer(decisions) {
      const content = requestsOf(messages)
        .filter(({ toolCallId }) => toolCallId in decisions)
        .map(({ approvalId, toolCallId }) => ({
          type: 'tool-approval-response',
          approvalId,
          approved: decisions[toolCallId],
        }))
      return go([...messages, { role: 'tool', content }])
    },
    save: () => JSON.stringify(messages),
  }
}
