// The loop for measurements without a wire. It has a model that is a function of the transcript, and a tool with a fixed result. The
// benchmark rejects a run that deviates from the script.
const toolResult = 'x'.repeat(200)
const path = (step) => `notes/${step}.txt`

/** The tool's result for a path. */
export const resultOf = (path) => path + toolResult

export function refuse(what) {
  throw new Error(`wrong work: ${what}`)
}

export const usage = {
  inputTokens: 100,
  outputTokens: 20,
  totalTokens: 120,
  cachedInputTokens: 0,
  reasoningTokens: 0,
}

/** `steps - 1` calls, then a text. Each step adds two messages to the first. */
export const modelOf = (steps) => ({
  // Custom servers have no price lookup.
  provider: 'localhost',
  model: 'bench',
  async request({ messages }) {
    const step = (messages.length - 1) / 2
    if (step > 0 && messages.at(-1).content !== resultOf(path(step - 1))) refuse(messages.at(-1).content)
    const isLast = step === steps - 1
    const call = {
      id: `call_${step}`,
      type: 'function',
      function: { name: 'read', arguments: `{"path":"${path(step)}","note":"${'x'.repeat(60)}"}` },
    }
    return {
      text: isLast ? 'All done.' : '',
      reasoning: '',
      refusal: null,
      toolCalls: isLast ? [] : [call],
      finishReason: isLast ? 'stop' : 'tool_calls',
      complete: true,
      usage,
      model: 'bench',
    }
  },
})
