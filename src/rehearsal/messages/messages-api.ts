import type { ProviderApi } from '../provider-api.js'
import { formatError, getErrorType, createMessagesEncoder, createSignature } from './messages-answer.js'
import {
  toChatRequest,
  type Block,
  toBlocks,
  type MessagesRequest,
  readMessagesRequest,
} from './messages-request.js'

/** Anthropic's Messages API. */
export const messagesApi: ProviderApi = {
  name: 'messages',
  idPrefix: 'msg_rehearsal_',
  readRequest: (sent) => toChatRequest(readMessagesRequest(sent)),
  findStrictProblem: (sent) => findProblem(readMessagesRequest(sent)),
  createEncoder: createMessagesEncoder,
  // The API has no field for our code.
  formatRefusal: ({ status, code, message }) => formatError(getErrorType(status), `${code}: ${message}`),
}

const maxMarks = 4

/** Checks the rules of this API: cache marks, returned thoughts, and call ids. */
function findProblem(request: MessagesRequest): { message: string; param: string } | null {
  const marks = JSON.stringify(request).split('"cache_control":{').length - 1
  if (marks > maxMarks)
    return createProblem('messages', `have ${marks} cache_control marks of at most ${maxMarks}.`)
  for (const [i, { role, content }] of request.messages.entries()) {
    for (const [j, block] of toBlocks(content).entries()) {
      const found = findBlockProblem(block, `messages.${i}.content.${j}`)
      if (found !== null) return found
    }
    if (role === request.messages[i - 1]?.role)
      return createProblem(`messages.${i}`, `has the role ${role}, like the one before.`)
  }
  return findMissingThought(request)
}

function findBlockProblem(block: Block, at: string): ReturnType<typeof findProblem> {
  switch (block.type) {
    case 'text':
      return String(block['text']).trim() === ''
        ? createProblem(`${at}.text`, 'text content blocks must be non-empty.')
        : null
    case 'thinking': {
      if (block['cache_control'] != null)
        return createProblem(at, 'is a thought, which takes no cache_control.')
      const isSigned = block['signature'] === createSignature(String(block['thinking']))
      return isSigned ? null : createProblem(`${at}.signature`, 'Invalid `signature` in `thinking` block.')
    }
    case 'tool_use':
      return findIdProblem(block['id'], `${at}.id`)
    case 'tool_result':
      return findIdProblem(block['tool_use_id'], `${at}.tool_use_id`)
    default:
      return null
  }
}

function findIdProblem(id: unknown, at: string): ReturnType<typeof findProblem> {
  return /^[a-zA-Z0-9_-]+$/.test(String(id)) ? null : createProblem(at, "should match '^[a-zA-Z0-9_-]+$'.")
}

/** With thinking on, results must come with the thoughts before their calls. */
function findMissingThought({ thinking, messages }: MessagesRequest): ReturnType<typeof findProblem> {
  if (thinking === undefined || thinking.type === 'disabled') return null
  const last = messages.findLastIndex(({ role }) => role === 'assistant')
  const blocks = toBlocks(messages[last]?.content)
  const [first] = blocks
  const isAnswered = toBlocks(messages[last + 1]?.content).some(({ type }) => type === 'tool_result')
  if (first === undefined || !isAnswered || first.type.endsWith('thinking')) return null
  return createProblem(
    `messages.${last}.content.0.type`,
    `Expected \`thinking\` or \`redacted_thinking\`, but found \`${first.type}\`.`,
  )
}

function createProblem(param: string, what: string): { message: string; param: string } {
  return { message: `${param}: ${what}`, param }
}
