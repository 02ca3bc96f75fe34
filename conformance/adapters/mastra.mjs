// Mastra's agent on its router for compatible servers. By default the caller keeps the messages of a run that ended; the
// documented way also keeps each step by `onStepFinish`.
import { Agent } from '@mastra/core/agent'
import { createTool } from '@mastra/core/tools'
import { toSchema } from './schema.mjs'

const describe = (error) => `${error?.name ?? 'Error'}: ${error?.message ?? JSON.stringify(error)}`

export function open({ baseURL, column, tools, limits }) {
  const isDocumented = column === 'documented'
  const agent = new Agent({
    id: 'scripted',
    name: 'scripted',
    instructions: 'You read files.',
    model: { id: 'scripted/scripted', url: baseURL, apiKey: 'none' },
    tools: Object.fromEntries(
      tools.map(({ name, description, fields, execute }) => [
        name,
        createTool({
          id: name,
          description,
          inputSchema: toSchema(fields),
          execute: (input, context) => execute(input, { signal: context?.abortSignal }),
        }),
      ]),
    ),
  })
  let messages = []
  return {
    async say(text, { signal } = {}) {
      messages = [...messages, { role: 'user', content: text }]
      const seen = { text: '', steps: [], finish: undefined, error: undefined }
      let own = []
      try {
        const result = await agent.stream(messages, {
          abortSignal: signal,
          ...(isDocumented && { modelSettings: { maxRetries: 2 } }),
          ...(limits.steps && { maxSteps: limits.steps }),
          onStepFinish: (step) => void seen.steps.push(step),
        })
        for await (const part of result.fullStream) {
          const { type, payload } = part
          if (type === 'step-start') seen.text = ''
          if (type === 'text-delta') seen.text += payload.text
          if (type === 'error') seen.error = describe(payload.error)
          if (type === 'abort') seen.error = 'abort'
          if (type === 'tripwire') seen.error = 'tripwire'
          if (type === 'finish') {
            seen.finish = payload.stepResult?.reason
            seen.usage = payload.output?.usage
          }
        }
        if (!seen.error) own = (await result.response).messages ?? []
      } catch (error) {
        seen.error ??= describe(error)
      }
      if (isDocumented && seen.error) own = seen.steps.at(-1)?.response?.messages ?? []
      messages = [...messages, ...own]
      const usage = seen.usage ?? (isDocumented ? sumOf(seen.steps) : undefined)
      return {
        text: seen.text,
        ok: !seen.error && seen.finish === 'stop',
        ended: seen.error ?? `finish ${seen.finish}`,
        usage: usage && { input: usage.inputTokens ?? Number.NaN, output: usage.outputTokens ?? Number.NaN },
      }
    },
  }
}

function sumOf(steps) {
  if (steps.length === 0) return undefined
  const sum = (key) => steps.reduce((total, { usage }) => total + (usage?.[key] ?? Number.NaN), 0)
  return { inputTokens: sum('inputTokens'), outputTokens: sum('outputTokens') }
}
