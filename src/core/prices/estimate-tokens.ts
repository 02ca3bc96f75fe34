import { isBetween } from '../base/text.js'
import { memoize } from '../base/values.js'
import type { AssistantMessage, ContentPart, Message, ToolCall } from '../../../machines/agent/messages.js'
import type { ModelResponse } from '../../../machines/agent/model-response.js'
import type { TokenUsage } from '../../../machines/agent/usage.js'
import type { ModelRequest, ToolSpec } from '../models/provider.js'

/**
 * Estimates for providers that report no counts. Compared with OpenAI's o200k_base, they are off by about 10% for
 * prose and code, and 20% for JSON. A tokenizer takes up megabytes and is exact for one model family.
 */

/** Tokens that a chat template adds per message, and per tool or call. */
export const perMessage = 4
const perTool = 8

/** Typical token counts for images, for low resolution and for about one million pixels. */
const imageTokens = { low: 85, high: 765 }

/** Bytes per token. Speech has about 10 tokens per second. A document page has about 1,000 tokens and 50 kB. */
const bytesPerToken = { mp3: 1_600, wav: 4_800, document: 50 }

/** Estimate for a file of a few pages that the provider stores. */
const storedFileTokens = 3_000

/**
 * One token is about 4 Latin letters, digits or spaces, 2.5 punctuation marks, 1.5 Chinese, Japanese or Korean
 * characters, 3 characters in other scripts, or two thirds of an emoji. Longer texts never have fewer tokens.
 */
export function estimateTextTokens(text: string): number {
  let sixtieths = 0
  for (let index = 0; index < text.length; index++) sixtieths += weighUnit(text.charCodeAt(index))
  return Math.ceil(sixtieths / 60)
}

/** Weight of a UTF-16 unit in sixtieths of a token, so that sums are exact. */
function weighUnit(unit: number): number {
  if (isBetween(unit, 0x21, 0x7e) && !isAlphanumeric(unit)) return 24
  if (unit < 0x250) return 15
  if (isEastAsian(unit)) return 40
  return isBetween(unit, 0xd800, 0xdfff) ? 45 : 20
}

/** Estimates the input tokens of a request: instructions, messages, nudges and tools. The counts are cached. */
export function estimateRequestTokens(request: ModelRequest): number {
  const { instructions, messages, nudges, tools } = request
  return (
    (instructions === null ? 0 : perMessage + estimateTextTokens(instructions)) +
    sumTokens(messages, countMessage) +
    sumTokens(nudges, (nudge) => perMessage + estimateTextTokens(nudge)) +
    sumTokens(tools, countTool)
  )
}

export function estimateUsage(
  request: ModelRequest,
  response: Pick<ModelResponse, 'text' | 'reasoning' | 'refusal' | 'toolCalls'>,
): TokenUsage {
  const { text, reasoning, refusal, toolCalls } = response
  const inputTokens = estimateRequestTokens(request)
  const reasoningTokens = estimateTextTokens(reasoning)
  const outputTokens =
    estimateTextTokens(text) +
    estimateTextTokens(refusal ?? '') +
    reasoningTokens +
    sumTokens(toolCalls, countCall)
  return createUsage(inputTokens, outputTokens, reasoningTokens)
}

/** Usage without cached input. */
export function createUsage(inputTokens: number, outputTokens: number, reasoningTokens = 0): TokenUsage {
  const totalTokens = inputTokens + outputTokens
  return { inputTokens, outputTokens, totalTokens, cachedInputTokens: 0, reasoningTokens }
}

export function estimatePartialUsage(request: ModelRequest, text: string, reasoning = ''): TokenUsage {
  return estimateUsage(request, { text, reasoning, refusal: null, toolCalls: [] })
}

type CountText = (text: string | null | undefined) => number

export interface CountOptions {
  countExtra?: (call: ToolCall) => number
  isEchoed?: (message: AssistantMessage) => boolean
}

/** Counts are cached, because messages and tools are immutable and are sent again with every request. */
export function createCounts(
  text: CountText,
  { countExtra = () => 0, isEchoed = () => false }: CountOptions = {},
) {
  const countCall = (call: ToolCall): number =>
    perTool + text(call.function.name) + text(call.function.arguments) + countExtra(call)
  const countParts = (parts: readonly ContentPart[] = []): number =>
    sumTokens(parts, (part) => (part.type === 'text' ? text(part.text) : countMediaTokens(part)))
  const countMessage = memoize((message: Message): number => {
    switch (message.role) {
      case 'user':
        return (
          perMessage +
          (typeof message.content === 'string' ? text(message.content) : countParts(message.content))
        )
      case 'assistant':
        return (
          perMessage +
          text(message.content) +
          text(message.refusal) +
          (isEchoed(message) ? text(message.reasoning) : 0) +
          sumTokens(message.tool_calls ?? [], countCall) +
          text(message.reasoning_details && JSON.stringify(message.reasoning_details)) +
          countParts(message.media) +
          text(message.provider_items && JSON.stringify(message.provider_items.items))
        )
      case 'tool':
        return perMessage + text(message.content) + countParts(message.media)
      default:
        return perMessage + text(message.content)
    }
  })
  const countTool = memoize(
    ({ name, description, parameters }: ToolSpec): number =>
      perTool + text(name) + text(description) + text(JSON.stringify(parameters)),
  )
  return { countMessage, countTool, countCall }
}

const { countMessage, countTool, countCall } = createCounts((text) => estimateTextTokens(text ?? ''))

function countMediaTokens(part: Exclude<ContentPart, { type: 'text' }>): number {
  switch (part.type) {
    case 'image_url':
      return part.image_url.detail === 'low' ? imageTokens.low : imageTokens.high
    case 'input_audio':
      return countBase64Tokens(part.input_audio.data, bytesPerToken[part.input_audio.format])
    default:
      return part.file.file_data === undefined
        ? storedFileTokens
        : countBase64Tokens(part.file.file_data, bytesPerToken.document)
  }
}

function countBase64Tokens(base64: string, bytesPerToken: number): number {
  return Math.ceil((base64.length * 3) / 4 / bytesPerToken)
}

const isAlphanumeric = (unit: number): boolean =>
  isBetween(unit, 0x30, 0x39) || isBetween(unit, 0x41, 0x5a) || isBetween(unit, 0x61, 0x7a)

const isEastAsian = (unit: number): boolean =>
  isBetween(unit, 0x2e80, 0x9fff) ||
  isBetween(unit, 0xac00, 0xd7ff) ||
  isBetween(unit, 0xf900, 0xfaff) ||
  isBetween(unit, 0xff00, 0xffef)

export function sumTokens<Item>(items: readonly Item[], tokens: (item: Item) => number): number {
  return items.reduce((total, item) => total + tokens(item), 0)
}

/** Removes a release date: `gpt-5-mini-2025-08-07` and `gpt-5-mini-20250807` become `gpt-5-mini`. */
export function stripReleaseDate(model: string): string {
  return model.replace(/-20\d{2}-?(0[1-9]|1[0-2])-?(0[1-9]|[12]\d|3[01])$/, '')
}
