// The answers of the scripted server, as a Chat Completions provider streams them. They are built by hand so that a case can modify
// them.

/** A frame for clients that request usage. Providers send it only to them. */
const ofUsage = (text) => ({ text, onlyWithUsage: true })

export const event = (data) => `data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`

const envelope = {
  id: 'chatcmpl-ID',
  object: 'chat.completion.chunk',
  created: 1_700_000_000,
  model: 'scripted',
}

export const chunk = (delta, finish = null) =>
  event({ ...envelope, choices: [{ index: 0, delta, finish_reason: finish }] })

export const usage = (input = 10, output = 5) =>
  ofUsage(
    event({
      ...envelope,
      choices: [],
      usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
    }),
  )

export const done = event('[DONE]')
export const first = chunk({ role: 'assistant', content: '' })

/** The end of an answer, with its finish reason, its usage, and `[DONE]`. */
export const end = (finish = 'stop', tokens = [10, 5]) => [chunk({}, finish), usage(...tokens), done]

const pieces = (text) => text.match(/.{1,12}/gsu) ?? []

export const words = (text) => pieces(text).map((content) => chunk({ content }))

/** A text answer. */
export const say = (text, { finish = 'stop', tokens } = {}) => ({
  frames: [first, ...words(text), ...end(finish, tokens)],
})

export const call = (index, id, name, input) => [
  chunk({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] }),
  ...pieces(typeof input === 'string' ? input : JSON.stringify(input)).map((text) =>
    chunk({ tool_calls: [{ index, function: { arguments: text } }] }),
  ),
]

/** An answer with tool calls. Each is `[id, name, input]`, with the input as an object or as the model's text. */
export const calls = (list, { text = '', finish = 'tool_calls', tokens } = {}) => ({
  frames: [
    first,
    ...words(text),
    ...list.flatMap(([id, name, input], at) => call(at, id, name, input)),
    ...end(finish, tokens),
  ],
})

/** A fault that replaces the rest of an answer. The socket closes, or the stream stalls. */
export const cut = { fault: 'cut' }
export const stall = { fault: 'stall' }

/** A pause that separates two chunks. */
export const apart = { apart: true }

export const refuse = (status, message, headers = {}) => ({
  status,
  headers,
  type: 'application/json',
  frames: [JSON.stringify({ error: { message, type: 'server_error', code: null, param: null } })],
})

/** A text answer to a client that did not request a stream. */
export const sayWhole = (text, [input, output]) => ({
  type: 'application/json',
  frames: [
    JSON.stringify({
      ...envelope,
      id: 'chatcmpl-1',
      object: 'chat.completion',
      choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
      usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
    }),
  ],
})
