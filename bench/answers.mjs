// Scripted models, and the tool that their answers call.
import { defineTool } from '../dist/src/index.js'

/** A complete answer. `more` adds or overrides fields. */
export const createAnswer = (text, toolCalls = [], more = {}) => ({
  text,
  reasoning: '',
  refusal: null,
  toolCalls,
  finishReason: toolCalls.length > 0 ? 'tool_calls' : 'stop',
  complete: true,
  usage: null,
  model: 'bench',
  ...more,
})

/** A tool call in an answer, the `n`th call of its session. */
export const call = (name, n) => ({
  id: `call-${n}`,
  type: 'function',
  function: { name, arguments: `{"at":${n}}` },
})

export const look = defineTool({
  name: 'look',
  description: 'Looks.',
  input: { type: 'object' },
  readOnly: true,
  execute: ({ at }) => `seen ${Number(at)}`,
})
