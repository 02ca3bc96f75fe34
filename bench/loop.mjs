// The loop that is measured without a wire: a model that is a function of the transcript, and what its tool returns. A run
// that does other work than this asks for is refused.
const toolResult = 'x'.repeat(200)
const path = (step) => `notes/${step}.txt`

/** What the tool returns for a path. */
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
  // A server of one's own: nobody looks its price up.
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
