import type { Json, JsonObject } from '../../machines/agent/json.js'
import { peek } from '../core/base/to-json.js'
import type { ContentPart } from '../../machines/agent/messages.js'
import { bytesOf, type InputPart, toContentPart } from '../core/models/media.js'
import { type ToolContent, toolContent } from '../core/tools/tool-content.js'
import { ToolError } from '../core/tools/tool-error.js'

/** What most models that take media take of each kind. */
const taken = new Set([
  'image/png',
  'image/jpeg',
  'image/gif',
  'image/webp',
  'audio/wav',
  'audio/x-wav',
  'audio/mpeg',
  'audio/mp3',
  'application/pdf',
])

/**
 * What the model reads of a tool's result: its texts, what else is in it described by type and size, and the structured
 * content when there is no text. Pictures, sound and documents are there, too, for models that take them.
 *
 * @throws {ToolError} `failed`, when the server says that it is an error
 */
export function readResult(result: JsonObject): Json | ToolContent | undefined {
  const content = Array.isArray(result.content) ? result.content : []
  const { structuredContent, isError } = result
  const hasText = content.some((part) => peek(part, 'type') === 'text')
  const head = hasText || structuredContent === undefined ? [] : [structuredContent]
  if (content.length === 0 && head.length > 0 && isError !== true) return structuredContent
  const parts = [...head.map((value) => JSON.stringify(value)), ...content.map(describePart)]
  const text = parts.join('\n')
  if (isError === true) throw new ToolError('failed', text || 'The server did not say why.')
  return (
    withMedia(content, parts.slice(head.length), parts.slice(0, head.length)) ??
    (parts.length === 0 ? undefined : text)
  )
}

/** Null where there is nothing but words, and where there is more than a request can have. */
function withMedia(
  content: readonly Json[],
  words: readonly string[],
  head: readonly string[],
): ToolContent | null {
  const media = content.map(mediaOf)
  if (media.every((part) => part === null)) return null
  const said = content.flatMap((part, i): InputPart[] => {
    const described: InputPart = { type: 'text', text: words[i] ?? '' }
    const shown = media[i]
    if (!shown) return [described]
    // Where it comes from is said before it.
    return peek(part, 'type') === 'resource' ? [described, shown] : [shown]
  })
  try {
    return toolContent([...head.map((text): InputPart => ({ type: 'text', text })), ...said], {
      orWords: true,
    })
  } catch {
    return null
  }
}

/** What models take of such a part; null for words, and for what none of them takes. */
function mediaOf(part: Json): ContentPart | null {
  const type = textOf(part, 'type')
  const [held, key] = type === 'resource' ? [peek(part, 'resource'), 'blob'] : [part, 'data']
  const mediaType = textOf(held, 'mimeType')?.toLowerCase() ?? ''
  const data = textOf(held, key)
  const isMedia = type === 'resource' || type === 'image' || type === 'audio'
  // An address is none of it: nothing is fetched that a server names.
  if (!isMedia || !taken.has(mediaType) || data === undefined || data.slice(0, 9).includes(':')) return null
  try {
    return toContentPart({ type: 'file', data, mediaType }, 'content')
  } catch {
    return null
  }
}

function describePart(part: Json): string {
  const type = textOf(part, 'type') ?? 'unknown'
  switch (type) {
    case 'text':
      return textOf(part, 'text') ?? ''
    case 'image':
    case 'audio':
      return `[${type}: ${typeOf(part)}, ${bytesOf(textOf(part, 'data') ?? '')} bytes]`
    case 'resource':
      return describeResource(peek(part, 'resource'))
    case 'resource_link': {
      const size = peek(part, 'size')
      const words = [textOf(part, 'name'), textOf(part, 'uri'), typeOf(part)]
      if (typeof size === 'number') words.push(`${size} bytes`)
      const about = textOf(part, 'description')
      return `[resource: ${words.filter(Boolean).join(', ')}]${about === undefined ? '' : ` ${about}`}`
    }
    default:
      return `[content of type '${type.slice(0, 50)}']`
  }
}

/** A text that is sent along is shown whole: it is what the call was made for. */
function describeResource(resource: unknown): string {
  const head = `${textOf(resource, 'uri') ?? 'without address'}, ${typeOf(resource)}`
  const text = textOf(resource, 'text')
  if (text !== undefined) return `[resource: ${head}, ${text.length} characters]\n${text}`
  return `[resource: ${head}, ${bytesOf(textOf(resource, 'blob') ?? '')} bytes]`
}

function typeOf(part: unknown): string {
  return textOf(part, 'mimeType') ?? 'unknown type'
}

function textOf(part: unknown, key: string): string | undefined {
  const value = peek(part, key)
  return typeof value === 'string' ? value : undefined
}
