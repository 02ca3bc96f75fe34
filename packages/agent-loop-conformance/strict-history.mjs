// The message errors that a strict provider rejects.

const textOf = (content) =>
  typeof content === 'string' ? content : (content ?? []).map((part) => part.text ?? '').join('')

/** The results of a history by call id, and their order. */
export const resultsOf = (messages) =>
  messages
    .filter(({ role }) => role === 'tool')
    .map((message) => ({ id: message.tool_call_id, text: textOf(message.content) }))

export const callsOf = (messages) => messages.flatMap(({ tool_calls: calls }) => calls ?? [])

export const usersOf = (messages) =>
  messages.filter(({ role }) => role === 'user').map(({ content }) => textOf(content))

export const answersOf = (messages) =>
  messages.filter(({ role }) => role === 'assistant').map(({ content }) => textOf(content))

function wrongCall(call, open) {
  if (typeof call.id !== 'string' || call.id === '') return 'a call has no id'
  if (open.has(call.id)) return `two calls of one answer have the id ${call.id}`
  if (call.type !== 'function' || !call.function?.name) return `the call ${call.id} names no function`
  try {
    const input = JSON.parse(call.function.arguments)
    if (input === null || typeof input !== 'object') return `the arguments of ${call.id} are no object`
  } catch {
    return `the arguments of ${call.id} are not JSON`
  }
  return undefined
}

/** Describes the mistake, or returns undefined. */
export function findHistoryProblem(messages) {
  if (!Array.isArray(messages) || messages.length === 0) return 'there are no messages'
  let open = new Set()
  for (const message of messages) {
    if (message.role === 'tool') {
      if (!open.delete(message.tool_call_id))
        return `a result for ${message.tool_call_id}, which is not an open call`
      continue
    }
    if (open.size > 0) return `the call ${[...open].join(', ')} has no result`
    open = new Set()
    if (message.role !== 'assistant') continue
    if (!message.tool_calls && textOf(message.content) === '') return 'an assistant message is empty'
    if (message.tool_calls?.length === 0) return 'an assistant message has an empty list of calls'
    for (const call of message.tool_calls ?? []) {
      const why = wrongCall(call, open)
      if (why) return why
      open.add(call.id)
    }
  }
  if (open.size > 0) return `the call ${[...open].join(', ')} has no result`
  return undefined
}
