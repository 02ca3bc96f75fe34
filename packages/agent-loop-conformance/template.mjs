// An adapter for agent-loop-conformance. Replace `ask` and the loop in `say` with your library.
// `variants`: the features that your loop does not have, each with a reason. `--list` prints all features.
export const variants = {
  documented: {
    retries: 'not implemented',
    usage: 'not implemented',
    tokenBudget: 'not implemented',
    deadline: 'not implemented',
    idleLimit: 'not implemented',
    session: 'not implemented',
    subAgents: 'not implemented',
    approvals: 'not implemented',
    forks: 'not implemented',
  },
}

/** One model request. Returns the text and the tool calls of the answer. */
async function ask(baseURL, messages, signal) {
  const body = JSON.stringify({ model: 'scripted', messages, stream: true })
  const response = await fetch(`${baseURL}/chat/completions`, { method: 'POST', body, signal })
  if (!response.ok) throw new Error(`HTTP ${response.status}: ${await response.text()}`)
  const answer = { text: '', calls: [], finish: 'none' }
  for (const line of (await response.text()).split('\n')) {
    if (!line.startsWith('data: {')) continue
    const { delta, finish_reason: finish } = JSON.parse(line.slice(6)).choices?.[0] ?? {}
    answer.text += delta?.content ?? ''
    answer.finish = finish ?? answer.finish
    for (const { index, id, function: part } of delta?.tool_calls ?? []) {
      const call = (answer.calls[index] ??= { id, type: 'function', function: { ...part, arguments: '' } })
      call.function.arguments += part?.arguments ?? ''
    }
  }
  return answer
}

/** `tools`: `[{ name, description, fields: { name: 'string' }, execute(input, { signal }), asks?, delegate? }]`. */
export function open({ baseURL, tools, limits }) {
  const messages = []
  return {
    /** One run: `{ text, ok, ended, pending?: [{ id }], usage?: { input, output, unknown } }`. */
    async say(content, { signal } = {}) {
      messages.push({ role: 'user', content })
      try {
        for (let step = 0; step < (limits.steps ?? 50); step++) {
          const { text, calls, finish } = await ask(baseURL, messages, signal)
          messages.push({ role: 'assistant', content: text, ...(calls.length > 0 && { tool_calls: calls }) })
          if (calls.length === 0) return { text, ok: finish === 'stop', ended: finish }
          for (const { id, function: call } of calls) {
            const tool = tools.find(({ name }) => name === call.name)
            const result = await tool.execute(JSON.parse(call.arguments), { signal })
            messages.push({ role: 'tool', tool_call_id: id, content: String(result) })
          }
        }
        return { text: '', ok: false, ended: 'step limit' }
      } catch (error) {
        return { text: '', ok: false, ended: String(error) }
      }
    },
  }
}
