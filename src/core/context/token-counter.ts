import type {
  AssistantMessage,
  ContentPart,
  Message,
  ToolCall,
  UserMessage,
} from '../../../machines/agent/messages.js'
import type { ModelProvider, ModelRequest, ToolSpec } from '../models/provider.js'
import { estimateRequestTokens, memoizeCount, sumTokens } from '../prices/estimate-tokens.js'
import type { Tokenizer } from './default-tokenizer.js'

/** The overhead of a chat template per message, per tool or call, and before the answer. */
export const perMessage = 4
const perTool = 8
const perRequest = 3

/** Counts the tokens of requests as sent. Messages and tools never change, so their counts are cached. */
export interface TokenCounter {
  /** The tokens of a plain text. */
  readonly text: (text: string) => number
  /**
   * The tokens of a message, including its text, calls and provider items, and 4 for its role. An image counts 765 (85
   * with `detail: 'low'`), and audio and documents count by size. Usage estimates use the same numbers.
   */
  readonly message: (message: Message) => number
  readonly instructions: (request: ModelRequest) => number
  readonly tools: (request: ModelRequest) => number
  /** The tokens of a request outside its messages: instructions, tools and nudges. */
  readonly fixed: (request: ModelRequest) => number
  /** The tokens of the whole request. */
  readonly request: (request: ModelRequest) => number
}

/** `echo` selects the answers whose reasoning is sent back as text. */
export function createTokenCounter(
  tokenizer: Tokenizer,
  echo?: ModelProvider['echoesReasoning'],
): TokenCounter {
  const text = (words: string | null | undefined): number => (words ? tokenizer.count(words) : 0)
  const call = ({ function: { name, arguments: input }, extra_content: extra }: ToolCall): number =>
    perTool + text(name) + text(input) + (extra === undefined ? 0 : text(JSON.stringify(extra)))

  const isEchoed = ({ tool_calls: calls = [] }: AssistantMessage): boolean =>
    echo === 'always' || (echo === 'with_calls' && calls.length > 0)

  const message = memoizeCount((message: Message): number => {
    switch (message.role) {
      case 'user':
        return typeof message.content === 'string'
          ? perMessage + text(message.content)
          : perMessage +
              countMediaTokens(message.content) +
              sumTokens(message.content, (part) => text(getPartText(part)))
      case 'assistant':
        return (
          perMessage +
          text(message.content || message.refusal) +
          (isEchoed(message) ? text(message.reasoning) : 0) +
          sumTokens(message.tool_calls ?? [], call) +
          text(message.reasoning_details && JSON.stringify(message.reasoning_details)) +
          countMediaTokens(message.media ?? []) +
          text(message.provider_items && JSON.stringify(message.provider_items.items))
        )
      case 'tool':
        return perMessage + text(message.content) + countMediaTokens(message.media ?? [])
      default:
        return perMessage + text(message.content)
    }
  })
  const tool = memoizeCount(
    ({ name, description, parameters }: ToolSpec): number =>
      perTool + text(name) + text(description) + text(JSON.stringify(parameters)),
  )
  const prompt = memoizeLatest((instructions: string): number => perMessage + text(instructions))

  const counter: TokenCounter = {
    text,
    message,
    instructions: ({ instructions }) => (instructions ? prompt(instructions) : 0),
    tools: ({ tools }) => sumTokens(tools, tool),
    fixed: (request) =>
      perRequest +
      counter.instructions(request) +
      counter.tools(request) +
      sumTokens(request.nudges, (nudge) => perMessage + text(nudge)),
    request: (request) => counter.fixed(request) + sumTokens(request.messages, message),
  }
  return counter
}

/** The tokens of images, audio and documents. */
function countMediaTokens(parts: readonly ContentPart[]): number {
  const media = parts.filter(({ type }) => type !== 'text')
  if (media.length === 0) return 0
  const message: UserMessage = { role: 'user', id: '', createdAt: 0, content: media }
  return estimateRequestTokens({ ...emptyRequest, messages: [message] }) - perMessage
}

const emptyRequest: ModelRequest = {
  instructions: null,
  messages: [],
  nudges: [],
  tools: [],
  sampling: {},
  extraBody: {},
  stream: false,
}

function getPartText(part: ContentPart): string {
  return part.type === 'text' ? part.text : ''
}

/** Caches the count of the latest text. */
function memoizeLatest(count: (text: string) => number): (text: string) => number {
  let known: { text: string; tokens: number } | undefined
  return (text) => {
    if (known?.text !== text) known = { text, tokens: count(text) }
    return known.tokens
  }
}
