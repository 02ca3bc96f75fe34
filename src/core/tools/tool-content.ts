import { optionsRule, expectArgument, listRule } from '../base/values.js'
import type { JsonObject } from '../../../machines/agent/json.js'
import type { MediaPart } from '../../../machines/agent/messages.js'
import type { ToolResult } from '../../../machines/agent/batch-calls.js'
import { inputError } from '../base/errors.js'
import { formatValue } from '../base/text.js'
import { type InputPart, describeMedia, getPayload, toContentPart } from '../models/media.js'

/** Maximum base64 characters in a result, which correspond to 20 MB. */
const mostMedia = 28 * 1024 * 1024

/** A tool result with media, created by `toolContent`. */
export class ToolContent {
  constructor(
    /** The text for readers that accept only text. */
    readonly text: string,
    readonly media: readonly MediaPart[],
    /** Whether models without known support for the media read only the text. */
    readonly mediaOptional = false,
  ) {}
}

/**
 * A tool result with text, images, audio and documents. Guards, shields and interfaces read the text and a description
 * of each medium. `tool_result` events and messages contain the media as `media`. Models that do not accept the media
 * fail with `unsupported_content`. With `mediaOptional`, such models and models whose support is unknown read the
 * descriptions instead. See the model option `media`.
 *
 * @example
 * const image = new Uint8Array([137, 80, 78, 71])
 * toolContent([{ type: 'text', text: 'The page:' }, { type: 'image', image, mediaType: 'image/png' }])
 *
 * @throws UsageError `invalid_input` for an invalid part, and for more than 20 MB
 */
export function toolContent(
  parts: readonly InputPart[],
  options: { mediaOptional?: boolean } = {},
): ToolContent {
  expectArgument(
    'toolContent(parts)',
    parts,
    listRule("a list of parts, such as [{ type: 'text', text: '…' }]"),
  )
  expectArgument('toolContent(parts, options)', options, optionsRule)
  const { mediaOptional = false } = options
  const read = parts.map((part, i) => toContentPart(part, `parts[${i}]`))
  const media = read.filter((part): part is MediaPart => part.type !== 'text')
  const length = media.reduce((sum, part) => sum + getPayload(part).length, 0)
  if (length > mostMedia) {
    throw inputError(
      `The parts contain ${Math.ceil(length / 1024 / 1024)} MB of base64; the maximum is ${mostMedia / 1024 / 1024} MB. Return a URL, or less data.`,
      'parts',
    )
  }
  const words = read.map((part) => (part.type === 'text' ? part.text : describeMedia(part)))
  return new ToolContent(words.join('\n'), media, mediaOptional)
}

/** A result with `appData`, which only the app receives. */
export class ResultWithData {
  constructor(
    readonly value: unknown,
    readonly appData: JsonObject,
  ) {}
}

/** Formats a tool result for the model and the app. Never throws. */
export function formatResult(
  value: unknown,
  maxChars: number,
): Pick<ToolResult, 'content' | 'truncated' | 'media' | 'mediaOptional' | 'appData'> {
  if (value instanceof ResultWithData)
    return { ...formatResult(value.value, maxChars), appData: value.appData }
  if (!(value instanceof ToolContent)) return formatValue(value, maxChars)
  const { text, media, mediaOptional } = value
  return {
    ...formatValue(text, maxChars),
    ...(media.length > 0 && { media: [...media] }),
    ...(media.length > 0 && mediaOptional && { mediaOptional }),
  }
}
