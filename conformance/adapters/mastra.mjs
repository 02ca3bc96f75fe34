// Mastra's agent on its router for compatible servers. By default the caller stores the messages of completed runs. The documented
// variant also stores each step in `onStepFinish`. Approvals need a storage in both variants.
import { Mastra } from '@mastra/core'
import { Agent } from '@mastra/core/agent'
import { InMemoryStore } from '@mastra/core/storage'
import { describe, dump, restore, sumOf, toTools, toUsage } from './mastra-parts.mjs'
import { facts } from '../facts.mjs'

export const { variants } = facts.mastra

export function open({ baseURL, variant, tools, limits, saved }) {
  const isDocumented = variant === 'documented'
  const common = {
    instructions: 'You read files.',
    model: { id: 'scripted/scripted', url: baseURL, apiKey: 'none' },
  }
  const below = tools.filter(({ delegate }) => delegate)
  const agent = new Agent({
    id: 'scripted',
    name: 'scripted',
    ...common,
    agents: Object.fromEntries(
      below.map(({ name, description }) => [name, new Agent({ id: name, name, description, ...common })]),
    ),
    tools: toTools(tools.filter(({ delegate }) => !delegate)),
  })
  const storage = tools.some(({ asks }) => asks) ? new InMemoryStore() : undefined
  // Registers the agent with its storage, as the page on approvals does.
  if (storage) void new Mastra({ agents: { scripted: agent }, storage, logger: false })
  const restored = saved ? restore(storage, saved) : undefined
  let runId
  let messages = []
  /** Reads a stream to the end. Its messages become the conversation. */
  const go = async (start) => {
    const seen = { text: '', steps: [], finish: undefined, error: undefined, pending: [] }
    let own = []
    try {
      const result = await start((step) => void seen.steps.push(step))
      runId = result.runId
      for await (const part of result.fullStream) {
        const { type, payload } = part
        if (type === 'step-start') seen.text = ''
        if (type === 'text-delta') seen.text += payload.text
        if (type === 'error') seen.error = describe(payload.error)
        if (type === 'abort' || type === 'tripwire') seen.error = type
        if (type === 'tool-call-approval') seen.pending.push({ id: payload.toolCallId })
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
      usage: toUsage(usage),
      pending: seen.pending,
    }
  }
  return {
    say(text, { signal } = {}) {
      messages = [...messages, { role: 'user', content: text }]
      return go((onStepFinish) =>
        agent.stream(messages, {
          abortSignal: signal,
          ...(isDocumented && { modelSettings: { maxRetries: 2 } }),
          ...(limits.steps && { maxSteps: limits.steps }),
          onStepFinish,
        }),
      )
    },
    async answer(decisions) {
      runId ??= await restored
      const waitingRun = runId
      let end
      for (const [toolCallId, isApproved] of Object.entries(decisions)) {
        const target = { runId: waitingRun, toolCallId }
        end = await go(() => (isApproved ? agent.approveToolCall(target) : agent.declineToolCall(target)))
      }
      return end
    },
    save: () => dump(storage, runId),
  }
}
