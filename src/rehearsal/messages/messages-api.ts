import * as z from 'zod'
import type { ProviderApi } from '../provider-api.js'
import { parseRequest, type ChatRequest, type WireMessage } from '../chat-request.js'
import { formatError, getErrorType, createMessagesEncoder, createSignature } from './messages-answer.js'

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

const block = z.looseObject({ type: z.string() })
const content = z.union([z.string(), z.array(block)], 'expected a string or an array of blocks')

const messagesRequest = z.looseObject({
  model: z.string().min(1),
  max_tokens: z.int().positive(),
  system: content.optional(),
  messages: z.array(z.looseObject({ role: z.enum(['user', 'assistant']), content })).min(1),
  stream: z.boolean().optional(),
  tools: z
    .array(
      z.looseObject({
        name: z.string(),
        type: z.string().optional(),
        description: z.string().optional(),
        input_schema: z.looseObject({}).optional(),
      }),
    )
    .optional(),
  metadata: z.looseObject({ user_id: z.string().nullish() }).optional(),
  thinking: z.looseObject({ type: z.string() }).optional(),
})

/** The body of a request to Anthropic's Messages API. */
interface MessagesRequest extends z.infer<typeof messagesRequest> {}

type Block = z.infer<typeof block>

/** @throws Refusal */
function readMessagesRequest(sent: unknown): MessagesRequest {
  return parseRequest(messagesRequest, sent)
}

function toBlocks(given: string | readonly Block[] | undefined): readonly Block[] {
  if (typeof given === 'string') return [{ type: 'text', text: given }]
  return given ?? []
}

/** The request as a Chat Completions request, in which results are separate messages. */
function toChatRequest(request: MessagesRequest): ChatRequest {
  const { model, system, messages, stream, tools, metadata } = request
  const rules = toBlocks(system).map(getText).join('\n\n')
  return {
    model,
    messages: [
      ...(system === undefined ? [] : [{ role: 'system' as const, content: rules }]),
      ...messages.flatMap(({ role, content: said }) =>
        role === 'user' ? toUserMessages(toBlocks(said)) : [toAssistantMessage(toBlocks(said))],
      ),
    ],
    ...(stream !== undefined && { stream }),
    ...(tools && {
      tools: tools.map(({ name, type = 'custom', description, input_schema: parameters }) =>
        parameters === undefined
          ? { type, name }
          : { type: 'function', function: { name, description, parameters } },
      ),
    }),
    ...(metadata?.user_id && { user: metadata.user_id }),
  }
}

function toUserMessages(blocks: readonly Block[]): WireMessage[] {
  const results = blocks.filter(({ type }) => type === 'tool_result')
  const rest = blocks.filter(({ type }) => type !== 'tool_result')
  return [
    ...results.map(
      (result): WireMessage => ({
        role: 'tool',
        tool_call_id: String(result['tool_use_id']),
        content: toParts(result['content']),
      }),
    ),
    ...(rest.length > 0 ? [{ role: 'user' as const, content: toParts(rest) }] : []),
  ]
}

function toAssistantMessage(blocks: readonly Block[]): WireMessage {
  const calls = blocks.filter(({ type }) => type === 'tool_use')
  const texts = blocks.filter(({ type }) => type === 'text').map(getText)
  const thoughts = blocks.filter(({ type }) => type === 'thinking').map((one) => String(one['thinking']))
  return {
    role: 'assistant',
    content: texts.length > 0 ? texts.join('') : null,
    ...(thoughts.length > 0 && { reasoning_content: thoughts.join('\n\n') }),
    ...(calls.length > 0 && {
      tool_calls: calls.map(({ id, name, input }) => ({
        id: String(id),
        type: 'function' as const,
        function: { name: String(name), arguments: JSON.stringify(input) ?? '' },
      })),
    }),
  }
}

/** A single text as a text, otherwise parts; other parts stay unchanged. */
function toParts(given: unknown): string | Block[] {
  if (typeof given === 'string') return given
  const blocks: Block[] = Array.isArray(given) ? given : []
  const [only] = blocks
  return blocks.length === 1 && only?.type === 'text' ? getText(only) : blocks
}

function getText(part: Block): string {
  return typeof part['text'] === 'string' ? part['text'] : ''
}
