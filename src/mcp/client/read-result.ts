import { valueOr } from '../../core/base/maybe-promise.js'
import type { Json, JsonObject } from '../../../machines/agent/json.js'
import { isRecord } from '../../../guards/lib/stored.js'
import { readProperty, readText } from '../../core/base/json.js'
import type { ContentPart } from '../../../machines/agent/messages.js'
import { countBase64Bytes, toContentPart } from '../../core/models/media.js'
import { type ToolContent, toolContent } from '../../core/tools/tool-content.js'
import { ToolError } from '../../core/tools/tool-error.js'

/** Types that most multimodal models accept. */
const acceptedTypes = new Set([
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
 * Converts a tool's result for the model: its text, a description of other content by type and size, and the structured
 * content if there is no text. Models that accept media also get images, audio and documents.
 * @throws {ToolError} `failed`, if the server marks the result as an error
 */
export function readResult(result: JsonObject): Json | ToolContent | undefined {
  const content = readContent(result)
  const { isError } = result
  const structuredContent = result.structuredContent ?? undefined
  const hasText = content.some((part) => readProperty(part, 'type') === 'text')
  const head = hasText || structuredContent === undefined ? [] : [structuredContent]
  if (content.length === 0 && head.length > 0 && isError !== true) return structuredContent
  const parts = [...head.map((value) => JSON.stringify(value)), ...content.map(describePart)]
  const text = parts.join('\n')
  if (isError === true) throw new ToolError('failed', text || 'The server gave no reason.')
  return toToolContent(content, parts.slice(0, head.length)) ?? (parts.length === 0 ? undefined : text)
}

/** Lists the parts of a result. A plain string counts as text. Blank texts are dropped if there is structured content. */
function readContent({ content, structuredContent }: JsonObject): Json[] {
  const parts = [content ?? []]
    .flat()
    .map((part): Json => (typeof part === 'string' ? { type: 'text', text: part } : part))
  const isBlank = (part: Json): boolean =>
    readProperty(part, 'type') === 'text' && describePart(part).trim() === ''
  return structuredContent == null ? parts : parts.filter((part) => !isBlank(part))
}

/** Maximum characters of JSON to store in the log for the app. */
const maxAppData = 65_536

/** The parts of a result that only the app receives. Null if there are none or they are too large. */
export function readAppData({ _meta: meta, structuredContent }: JsonObject): JsonObject | null {
  // Protocol keys are not part of the result.
  const entries = isRecord(meta) ? Object.entries(meta).filter(([key]) => !key.startsWith(ofProtocol)) : []
  const data: JsonObject = {
    ...(entries.length > 0 && { _meta: Object.fromEntries(entries) }),
    ...(structuredContent != null && { structuredContent }),
  }
  return Object.keys(data).length === 0 || countJson(data) > maxAppData ? null : data
}

/** Counts the characters of JSON. Infinity for very deep nesting. */
export function countJson(data: Json): number {
  return valueOr(() => JSON.stringify(data).length, Infinity)
}

const ofProtocol = 'io.modelcontextprotocol/'

/** The content as media. Null if there is only text, or if the content exceeds the size of a request. */
function toToolContent(content: readonly Json[], head: readonly string[]): ToolContent | null {
  const parts = content.flatMap(toParts)
  if (parts.every(({ type }) => type === 'text')) return null
  const texts = head.map((text): ContentPart => ({ type: 'text', text }))
  return valueOr(() => toolContent([...texts, ...parts], { mediaOptional: true }), null)
}

export function toParts(part: Json): ContentPart[] {
  const described: ContentPart = { type: 'text', text: describePart(part) }
  const shown = toMediaPart(part)
  if (!shown) return [described]
  // The address comes first.
  return readProperty(part, 'type') === 'resource' ? [described, shown] : [shown]
}

/** Other names that servers use for accepted types. */
const typeNames: Readonly<Record<string, string>> = {
  'image/jpg': 'image/jpeg',
  'image/pjpeg': 'image/jpeg',
  'image/x-png': 'image/png',
  'audio/wave': 'audio/wav',
  'audio/vnd.wave': 'audio/wav',
  'audio/x-mp3': 'audio/mpeg',
  'application/x-pdf': 'application/pdf',
}

/** Removes line breaks (which MIME adds) and converts the URL-safe alphabet. */
function toPlainBase64(text: string): string {
  return text.replaceAll(/\s+/g, '').replaceAll('-', '+').replaceAll('_', '/')
}

function toMediaPart(part: Json): ContentPart | null {
  const type = readText(part, 'type')
  const [held, key] = type === 'resource' ? [readProperty(part, 'resource'), 'blob'] : [part, 'data']
  const encoded = readText(held, key)
  const [, addressType = '', base64 = encoded] =
    /^data:([^;,]*)(?:;[^,]*)?;base64,(.*)$/is.exec(encoded) ?? []
  const named = (findText(held, 'mimeType') ?? addressType).toLowerCase().replace(/;.*/s, '').trim()
  const mediaType = typeNames[named] ?? named
  const data = toPlainBase64(base64)
  // URLs are not fetched.
  if (!['resource', 'image', 'audio'].includes(type) || data === '' || data.slice(0, 9).includes(':'))
    return null
  if (!acceptedTypes.has(mediaType)) return null
  return valueOr(() => toContentPart({ type: 'file', data, mediaType }, 'content'), null)
}

function describePart(part: Json): string {
  const type = findText(part, 'type') ?? 'unknown'
  switch (type) {
    case 'text': {
      const text = readProperty(part, 'text')
      return typeof text === 'string' ? text : text == null ? '' : JSON.stringify(text)
    }
    case 'image':
    case 'audio':
      return `[${type}: ${readMimeType(part)}, ${countBytes(part, 'data')} bytes]`
    case 'resource':
      return describeResource(readProperty(part, 'resource'))
    case 'resource_link': {
      const size = readProperty(part, 'size')
      const words = [readText(part, 'name'), readText(part, 'uri'), readMimeType(part)]
      if (typeof size === 'number') words.push(`${size} bytes`)
      const about = findText(part, 'description')
      return `[resource: ${words.filter(Boolean).join(', ')}]${about === undefined ? '' : ` ${about}`}`
    }
    default:
      return `[content of type '${type.slice(0, 50)}']`
  }
}

/** Embedded text is shown in full, because the text is the purpose of the call. */
function describeResource(resource: unknown): string {
  const head = `${findText(resource, 'uri') ?? 'without address'}, ${readMimeType(resource)}`
  const text = findText(resource, 'text')
  if (text !== undefined) return `[resource: ${head}, ${text.length} characters]\n${text}`
  return `[resource: ${head}, ${countBytes(resource, 'blob')} bytes]`
}

const countBytes = (part: unknown, key: string): number =>
  countBase64Bytes(toPlainBase64(readText(part, key)))

const readMimeType = (part: unknown): string => findText(part, 'mimeType') ?? 'unknown type'

function findText(part: unknown, key: string): string | undefined {
  const value = readProperty(part, key)
  return typeof value === 'string' ? value : undefined
}
