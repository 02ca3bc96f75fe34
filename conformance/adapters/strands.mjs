// Strands' agent, which stores the conversation. The documented variant sets `limits` in cases that have limits.
import { Agent, BeforeToolCallEvent, InterruptResponseContent, tool } from '@strands-agents/sdk'
import { OpenAIModel } from '@strands-agents/sdk/models/openai'
import { toSchema } from './schema.mjs'
import { facts } from '../facts.mjs'

export const { variants } = facts.strands
export { openStored } from './strands-stored.mjs'

export function open(setup) {
  const { baseURL, tools, limits, saved } = setup
  const model = new OpenAIModel({
    api: 'chat',
    apiKey: 'none',
    modelId: 'scripted',
    clientConfig: { baseURL },
  })
  const agent = new Agent({
    model,
    tools: tools.map(({ name, description, fields, execute, delegate }) =>
      delegate
        ? new Agent({ name, description, model, printer: false }).asTool()
        : tool({
            name,
            description,
            inputSchema: toSchema(fields),
            callback: (input, context) =>
              execute(input, { signal: context?.agent?.cancelSignal ?? context?.cancelSignal }),
          }),
    ),
    printer: false,
  })
  const asking = tools.filter(({ asks }) => asks).map(({ name }) => name)
  agent.addHook(BeforeToolCallEvent, (event) => {
    const { name, toolUseId } = event.toolUse
    if (!asking.includes(name)) return
    if (event.interrupt({ name: toolUseId, reason: 'approval' }) !== 'yes') event.cancel = 'Refused.'
  })
  let interrupts = []
  if (saved) {
    const state = JSON.parse(saved)
    agent.loadSnapshot(state.snapshot)
    interrupts = state.asked
  }
  const go = async (input, { signal } = {}) => {
    let result
    let error
    try {
      result = await agent.invoke(input, {
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
    if (result?.interrupts?.length > 0) interrupts = result.interrupts.map(({ id, name }) => ({ id, name }))
    const usage = result?.metrics?.latestAgentInvocation?.usage ?? result?.metrics?.accumulatedUsage
    return {
      text: result?.toString().trim() ?? '',
      ok: result?.stopReason === 'endTurn',
      ended: error ? `${error.name}: ${error.message}` : `stopReason ${result.stopReason}`,
      usage: usage && { input: usage.inputTokens, output: usage.outputTokens },
      pending: (result?.interrupts ?? []).map(({ name }) => ({ id: name })),
    }
  }
  const save = () =>
    JSON.stringify({ snapshot: agent.takeSnapshot({ preset: 'session' }), asked: interrupts })
  return {
    say: (text, options) => go(text, options),
    answer: (decisions) =>
      go(
        interrupts
          .filter(({ name }) => name in decisions)
          .map(
            ({ id, name }) =>
              new InterruptResponseContent({ interruptId: id, response: decisions[name] ? 'yes' : 'no' }),
          ),
      ),
    save,
    // The snapshots are documented for "Branching conversations".
    fork: () => open({ ...setup, saved: save() }),
  }
}
