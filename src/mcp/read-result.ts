import type { Json, JsonObject } from '../../machines/agent/json.js'
import { peek } from '../core/base/to-json.js'
import { bytesOf } from '../core/models/media.js'
import { ToolError } from '../core/tools/tool-error.js'

/**
 * What the model reads of a tool's result: its texts, what else is in it described by type and size, and the structured
 * content when there is no text.
 *
 * @throws {ToolError} `failed`, when the server says that it is an error
 */
export function readResult(result: JsonObject): Json | undefined {
  const content = Array.isArray(result.content) ? result.content : []
  const { structuredContent, isError } = result
  const hasText = content.some((part) => peek(part, 'type') === 'text')
  const parts = content.map(describePart)
  const isAlone = parts.length === 0 && isError !== true
  if (!hasText && structuredContent !== undefined) {
    if (isAlone) return structuredContent
    parts.unshift(JSON.stringify(structuredContent))
  }
  const text = parts.join('\n')
  if (isError === true) throw new ToolError('failed', text || 'The server did not say why.')
  return parts.length === 0 ? undefined : text
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
