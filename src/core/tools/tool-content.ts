import { optionsRule, expectArgument, listRule } from '../base/values.js'
import type { JsonObject } from '../../../machines/agent/json.js'
import type { MediaPart } from '../../../machines/agent/messages.js'
import type { ToolResult } from '../../../machines/agent/batch-calls.js'
import { UsageError } from '../base/errors.js'
import { formatValue } from '../base/text.js'
import { type InputPart, describeMedia, getPayloadLength, toContentPart } from '../models/media.js'

/** Characters of base64 that a result may have in its pictures, sounds and documents: 20 MB of them. */
const mostMedia = 28 * 1024 * 1024

/**
 * What a tool returns that is more than a text: what `toolContent` makes.
 *
 * @example const chart: ToolContent = toolContent([{ type: 'image', image: 'https://example.com/chart.png' }])
 */
export class ToolContent {
  /** The text for readers that take only text. */
  readonly text: string
  readonly media: readonly MediaPart[]
  /** A model that is not known to take the media reads the text alone. */
  readonly orWords: boolean

  constructor(text: string, media: readonly MediaPart[], orWords = false) {
    this.text = text
    this.media = media
    this.orWords = orWords
  }
}

/**
 * A tool's result of texts, pictures, sounds and documents, for models that can look at them. Guards, shields and interfaces
 * read its texts, and of the rest a line in words; `tool_result` events and messages have the rest as `media`.
 *
 * A model that does not take them is an error (`unsupported_content`). With `orWords` it reads the lines in words
 * instead, and so does a model whose support is not known: set its option `media`.
 *
 * @example
 * const screenshot = defineTool({
 *   name: 'screenshot',
 *   description: 'The page as it looks now.',
 *   input: z.object({}),
 *   execute: async () => {
 *     const image = new Uint8Array([137, 80, 78, 71])
 *     return toolContent([{ type: 'text', text: 'The page:' }, { type: 'image', image, mediaType: 'image/png' }])
 *   },
 * })
 *
 * @throws UsageError `invalid_input` for what is no part, and for more than 20 MB
 */
export function toolContent(parts: readonly InputPart[], options: { orWords?: boolean } = {}): ToolContent {
  expectArgument(
    'toolContent(parts)',
    parts,
    listRule("a list of parts, such as [{ type: 'text', text: '…' }]"),
  )
  expectArgument('toolContent(parts, options)', options, optionsRule)
  const { orWords = false } = options
  const read = parts.map((part, i) => toContentPart(part, `parts[${i}]`))
  const media = read.filter((part): part is MediaPart => part.type !== 'text')
  const length = media.reduce((sum, part) => sum + getPayloadLength(part), 0)
  if (length > mostMedia) {
    throw new UsageError(
      'invalid_input',
      `The parts have ${Math.ceil(length / 1024 / 1024)} MB of base64 in them, of at most ${mostMedia / 1024 / 1024}. Return an address, or less.`,
      'parts',
    )
  }
  const words = read.map((part) => (part.type === 'text' ? part.text : describeMedia(part)))
  return new ToolContent(words.join('\n'), media, orWords)
}

/** What a tool returns beside what the model reads: `appData` is for the app alone. */
export class ResultWithData {
  readonly value: unknown
  readonly appData: JsonObject

  constructor(value: unknown, appData: JsonObject) {
    this.value = value
    this.appData = appData
  }
}

/** What a tool returned, as the model and the app get it. Never throws. */
export function formatResult(
  value: unknown,
  maxChars: number,
): Pick<ToolResult, 'content' | 'truncated' | 'media' | 'orWords' | 'appData'> {
  if (value instanceof ResultWithData)
    return { ...formatResult(value.value, maxChars), appData: value.appData }
  if (!(value instanceof ToolContent)) return formatValue(value, maxChars)
  const { text, media, orWords } = value
  return {
    ...formatValue(text, maxChars),
    ...(media.length > 0 && { media: [...media] }),
    ...(media.length > 0 && orWords && { orWords }),
  }
}
