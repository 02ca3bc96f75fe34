import * as z from 'zod'
import { parseRequest, type ChatRequest, type WireMessage } from '../chat-request.js'

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
export interface MessagesRequest extends z.infer<typeof messagesRequest> {}

export type Block = z.infer<typeof block>

/** @throws Refusal */
export function readMessagesRequest(sent: unknown): MessagesRequest {
  return parseRequest(messagesRequest, sent)
}

export function toBlocks(given: string | readonly Block[] | undefined): readonly Block[] {
  if (typeof given === 'string') return [{ type: 'text', text: given }]
  return given ?? []
}

/** The request as a Chat Completions request, in which results are separate messages. */
export function toChatRequest(request: MessagesRequest): ChatRequest {
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
