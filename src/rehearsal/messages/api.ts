import type { Api } from '../api.js'
import { errorBody, errorType, messagesSpeech, signatureOf } from './answer.js'
import { asChatRequest, type Block, blocksOf, type MessagesRequest, readMessagesRequest } from './request.js'

/** Anthropic's Messages API. */
export const messagesApi: Api = {
  name: 'messages',
  idPrefix: 'msg_rehearsal_',
  read: (sent) => asChatRequest(readMessagesRequest(sent)),
  strictProblem: (sent) => problemIn(readMessagesRequest(sent)),
  speech: messagesSpeech,
  // The code is one of ours, which the API has no place for.
  refusalBody: ({ status, code, message }) => errorBody(errorType(status), `${code}: ${message}`),
}

const mostMarks = 4

/** The rules that only this API has: of marks for its cache, of thoughts that come back, and of the ids of calls. */
function problemIn(request: MessagesRequest): { message: string; param: string } | null {
  const marks = JSON.stringify(request).split('"cache_control":{').length - 1
  if (marks > mostMarks)
    return problem('messages', `have ${marks} cache_control marks of at most ${mostMarks}.`)
  for (const [i, { role, content }] of request.messages.entries()) {
    for (const [j, block] of blocksOf(content).entries()) {
      const found = blockProblem(block, `messages.${i}.content.${j}`)
      if (found !== null) return found
    }
    if (role === request.messages[i - 1]?.role)
      return problem(`messages.${i}`, `has the role ${role}, like the one before.`)
  }
  return unthinking(request)
}

function blockProblem(block: Block, at: string): ReturnType<typeof problemIn> {
  switch (block.type) {
    case 'text':
      return String(block['text']).trim() === ''
        ? problem(`${at}.text`, 'text content blocks must be non-empty.')
        : null
    case 'thinking': {
      if (block['cache_control'] != null) return problem(at, 'is a thought, which takes no cache_control.')
      const isSigned = block['signature'] === signatureOf(String(block['thinking']))
      return isSigned ? null : problem(`${at}.signature`, 'Invalid `signature` in `thinking` block.')
    }
    case 'tool_use':
      return idProblem(block['id'], `${at}.id`)
    case 'tool_result':
      return idProblem(block['tool_use_id'], `${at}.tool_use_id`)
    default:
      return null
  }
}

function idProblem(id: unknown, at: string): ReturnType<typeof problemIn> {
  return /^[a-zA-Z0-9_-]+$/.test(String(id)) ? null : problem(at, "should match '^[a-zA-Z0-9_-]+$'.")
}

/** While calls are answered, the thoughts that led to them have to come back, where there is to be thinking. */
function unthinking({ thinking, messages }: MessagesRequest): ReturnType<typeof problemIn> {
  if (thinking === undefined || thinking.type === 'disabled') return null
  const last = messages.findLastIndex(({ role }) => role === 'assistant')
  const blocks = blocksOf(messages[last]?.content)
  const [first] = blocks
  const isAnswered = blocksOf(messages[last + 1]?.content).some(({ type }) => type === 'tool_result')
  if (first === undefined || !isAnswered || first.type.endsWith('thinking')) return null
  return problem(
    `messages.${last}.content.0.type`,
    `Expected \`thinking\` or \`redacted_thinking\`, but found \`${first.type}\`.`,
  )
}

function problem(param: string, what: string): { message: string; param: string } {
  return { message: `${param}: ${what}`, param }
}
