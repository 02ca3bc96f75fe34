// AI SDK: a ToolLoopAgent on the provider for compatible servers. The caller keeps the messages, as its pages on memory do: by
// default those of a run that ended; the documented way also keeps each step by `onStepEnd`.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { isStepCount, tool, ToolLoopAgent } from 'ai'
import { toSchema } from './schema.mjs'

const describe = (error) => `${error?.name ?? 'Error'}: ${error?.message ?? error}`

const hasSpent =
  (most) =>
  ({ steps }) =>
    steps.reduce((sum, { usage }) => sum + (usage.inputTokens ?? 0) + (usage.outputTokens ?? 0), 0) >= most

export function open({ baseURL, column, tools, limits }) {
  const isDocumented = column === 'documented'
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
  })
  const messages = []
  return {
    async say(text, { signal } = {}) {
      messages.push({ role: 'user', content: text })
      const seen = { text: '', finish: undefined, error: undefined, steps: [] }
      try {
        const result = await agent.stream({
          messages: [...messages],
          abortSignal: signal,
          ...(limits.idleMs && { timeout: { chunkMs: limits.idleMs } }),
          onError: () => {},
          onStepEnd: (step) => void seen.steps.push(step),
        })
        for await (const part of result.stream) {
          if (part.type === 'start-step') seen.text = ''
          if (part.type === 'text-delta') seen.text += part.text
          if (part.type === 'error') seen.error = describe(part.error)
          if (part.type === 'abort') seen.error = 'abort'
          if (part.type === 'finish') {
            seen.finish = part.finishReason
            seen.usage = part.totalUsage
          }
        }
        if (!isDocumented) messages.push(...(await result.responseMessages))
      } catch (error) {
        seen.error ??= describe(error)
      }
      if (isDocumented) messages.push(...seen.steps.flatMap((step) => step.response.messages))
      return {
        text: seen.text,
        ok: !seen.error && seen.finish === 'stop',
        ended: seen.error ?? `finishReason ${seen.finish}`,
        usage: usageOf(seen, isDocumented),
      }
    },
  }
}

function usageOf({ usage, steps }, isDocumented) {
  const parts = usage ? [usage] : isDocumented ? steps.map((step) => step.usage) : []
  if (parts.length === 0) return undefined
  const sum = (key) => parts.reduce((total, part) => total + (part[key] ?? Number.NaN), 0)
  return { input: sum('inputTokens'), output: sum('outputTokens') }
}
