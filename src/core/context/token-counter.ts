import type { Message } from '../../../machines/agent/messages.js'
import type { ModelProvider, ModelRequest } from '../models/provider.js'
import { createCounts, perMessage, sumTokens } from '../prices/estimate-tokens.js'
import type { Tokenizer } from './default-tokenizer.js'

/** Tokens that a chat template adds before the answer. */
const perRequest = 3

/** Counts the tokens of requests as they are sent. Messages and tools are immutable, so their counts are cached. */
export interface TokenCounter {
  readonly text: (text: string) => number
  /**
   * Tokens of a message: its text, calls and provider items, plus 4 for its role. An image counts as 765 tokens (85
   * with `detail: 'low'`). Audio and documents count by size. Usage estimates use the same numbers.
   */
  readonly message: (message: Message) => number
  readonly instructions: (request: ModelRequest) => number
  readonly tools: (request: ModelRequest) => number
  readonly fixed: (request: ModelRequest) => number
  readonly request: (request: ModelRequest) => number
}

/** Creates a token counter. `echo` selects the answers whose reasoning is sent back as text. */
export function createTokenCounter(
  tokenizer: Tokenizer,
  echo?: ModelProvider['echoesReasoning'],
): TokenCounter {
  const text = (words: string | null | undefined): number => (words ? tokenizer.count(words) : 0)
  const { countMessage: message, countTool } = createCounts(text, {
    countExtra: ({ extra_content: extra }) => (extra === undefined ? 0 : text(JSON.stringify(extra))),
    isEchoed: ({ tool_calls: calls = [] }) =>
      echo === 'always' || (echo === 'with_calls' && calls.length > 0),
  })
  const prompt = memoizeLatest((instructions: string): number => perMessage + text(instructions))

  const counter: TokenCounter = {
    text,
    message,
    instructions: ({ instructions }) => (instructions ? prompt(instructions) : 0),
    tools: ({ tools }) => sumTokens(tools, countTool),
    fixed: (request) =>
      perRequest +
      counter.instructions(request) +
      counter.tools(request) +
      sumTokens(request.nudges, (nudge) => perMessage + text(nudge)),
    request: (request) => counter.fixed(request) + sumTokens(request.messages, message),
  }
  return counter
}

function memoizeLatest(count: (text: string) => number): (text: string) => number {
  let known: { text: string; tokens: number } | undefined
  return (text) => {
    if (known?.text !== text) known = { text, tokens: count(text) }
    return known.tokens
  }
}
