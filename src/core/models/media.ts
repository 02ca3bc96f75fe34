import { memoize } from '../base/values.js'
import { valueOr } from '../base/maybe-promise.js'
import type { ContentPart, MediaPart } from '../../../machines/agent/messages.js'
import type { MediaKind } from '../../../machines/agent/refusals.js'
import { inputError } from '../base/errors.js'
import { readPath } from '../base/json.js'
import { decodeBase64, decodePercent } from '../base/text.js'

/** Bytes, base64, or a `data:` or `http(s):` URL. Converted to a Chat Completions message part. */
export type MediaInput =
  | { type: 'image'; image: MediaData; mediaType?: string | undefined }
  | { type: 'file'; data: MediaData; mediaType: string; filename?: string | undefined }

export type MediaData = string | URL | Uint8Array | ArrayBuffer

/**
 * A part of a user message or a tool result.
 *
 * @example
 * const parts: InputPart[] = [
 *   { type: 'text', text: 'What is this?' },
 *   { type: 'image', image: 'https://example.com/heron.png' },
 * ]
 * agent.run(parts)
 */
export type InputPart = ContentPart | MediaInput

const payloads: Record<ContentPart['type'], (part: Fields) => unknown> = {
  text: (part) => part['text'],
  image_url: (part) => readPath(part, ['image_url', 'url']),
  input_audio: (part) => readPath(part, ['input_audio', 'data']),
  file: (part) => readPath(part, ['file', 'file_data']) ?? readPath(part, ['file', 'file_id']),
}

type Fields = Record<string, unknown>

/** @throws UsageError `invalid_input` for an invalid part. The error names its position. */
export function toContentPart(input: unknown, at: string): ContentPart {
  const part = (typeof input === 'object' && input !== null ? input : {}) as Fields
  const { type } = part
  if (type === 'image') return toImagePart(part, at)
  if (type === 'file' && part['file'] === undefined) return toDocumentPart(part, at)
  if (typeof type !== 'string' || !Object.hasOwn(payloads, type))
    throw inputError(`${at}.type must be one of ${Object.keys(payloads).join(', ')}, image.`, at)
  const payload = payloads[type as ContentPart['type']](part)
  if (typeof payload !== 'string')
    throw inputError(`${at} has the type ${type}, but no valid ${type} field.`, at)
  if (/^file:/i.test(payload) && type !== 'text') throw inputError(`${at} ${localFileHint}`, at)
  return part as ContentPart
}

/** The part, or null for text and for invalid input. */
export function readMediaPart(input: unknown): MediaPart | null {
  const part = valueOr(() => toContentPart(input, 'media'), null)
  return part?.type === 'text' ? null : part
}

function toImagePart(part: Fields, at: string): ContentPart {
  const { mediaType } = part
  const data = readData(part['image'], `${at}.image`)
  const type = typeof mediaType === 'string' ? mediaType : 'image/png'
  return { type: 'image_url', image_url: { url: toAddress(data, type) } }
}

function toDocumentPart(part: Fields, at: string): ContentPart {
  const { mediaType, filename } = part
  if (typeof mediaType !== 'string' || !mediaType.includes('/'))
    throw inputError(`${at}.mediaType must be a media type, such as 'application/pdf'.`, `${at}.mediaType`)
  const data = readData(part['data'], `${at}.data`)
  const [kind] = mediaType.split('/')
  const url = toAddress(data, mediaType)
  if (kind === 'image') return { type: 'image_url', image_url: { url } }
  const format = audioFormats[mediaType]
  if (format !== undefined && url.startsWith('data:'))
    return { type: 'input_audio', input_audio: { data: url.slice(url.indexOf(',') + 1), format } }
  return { type: 'file', file: { file_data: url, ...(typeof filename === 'string' && { filename }) } }
}

const audioFormats: Readonly<Record<string, 'mp3' | 'wav'>> = {
  'audio/mpeg': 'mp3',
  'audio/mp3': 'mp3',
  'audio/wav': 'wav',
  'audio/x-wav': 'wav',
}

const localFileHint = 'is a local file, which providers cannot reach. Read it and pass its bytes.'

function readData(input: unknown, at: string): string {
  if (input instanceof ArrayBuffer) return readData(new Uint8Array(input), at)
  if (input instanceof Uint8Array) {
    if (input.length === 0) throw inputError(`${at} is empty.`, at)
    return toBase64(input)
  }
  const data = input instanceof URL ? input.href : input
  if (typeof data === 'string' && (isAddress(data) ? isWellFormedAddress(data) : isBase64(data))) return data
  if (typeof data === 'string' && /^file:/i.test(data)) throw inputError(`${at} ${localFileHint}`, at)
  throw inputError(`${at} must be bytes, base64, or a data: or http(s): URL.`, at)
}

/** Whether an address is a valid URL. `data:` URLs are not parsed, because they may be large. */
function isWellFormedAddress(text: string): boolean {
  return /^data:/i.test(text) || URL.canParse(text)
}

/** Checks only this many characters at each end. */
const inspectedChars = 64 * 1024

/** Whether a text is base64. The last base64 group must have at least two characters. */
function isBase64(text: string): boolean {
  const end = text.slice(-inspectedChars)
  const padded = /=*$/.exec(text.slice(-3))?.[0].length ?? 0
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(end) || (text.length - padded) % 4 === 1) return false
  return (
    text.length <= inspectedChars ||
    /^[A-Za-z0-9+/]+$/.test(text.slice(0, Math.min(inspectedChars, text.length - inspectedChars)))
  )
}

function isAddress(text: string): boolean {
  return /^(data:[^,]*,|https?:\/\/)/i.test(text)
}

/** Determines the type of an image from its bytes, because providers reject images with the wrong label. */
function toAddress(data: string, mediaType: string): string {
  if (isAddress(data)) return data
  const start = Object.keys(imageStarts).find((one) => data.startsWith(one)) ?? ''
  const type = mediaType.startsWith('image/') ? imageStarts[start] : undefined
  return `data:${type ?? mediaType};base64,${data}`
}

/** The first base64 characters of images. */
const imageStarts: Readonly<Record<string, string>> = {
  iVBORw0KGgo: 'image/png',
  '/9j/': 'image/jpeg',
  R0lGOD: 'image/gif',
  UklGR: 'image/webp',
}

/** Encodes chunks without padding, because `btoa` takes a string with one character per byte. */
export function toBase64(data: Uint8Array): string {
  let text = ''
  for (let at = 0; at < data.length; at += base64Chunk)
    // A spread of bytes takes six times as long.
    text += btoa(String.fromCharCode.apply(null, data.subarray(at, at + base64Chunk) as unknown as number[]))
  return text
}

/** A multiple of 3, and few enough arguments for a call. */
const base64Chunk = 0x3000

export function isMediaList(media: unknown): boolean {
  const kinds: unknown[] = ['image', 'audio', 'file']
  return media === undefined || (Array.isArray(media) && media.every((kind) => kinds.includes(kind)))
}

export function getMediaKind({ type }: MediaPart): MediaKind {
  if (type === 'image_url') return 'image'
  return type === 'input_audio' ? 'audio' : 'file'
}

/** Such as `[image: image/png, 5120 bytes, #1f3c]`. The hash distinguishes images of the same size. */
export const describeMedia = memoize((part: MediaPart): string => {
  const kind = getMediaKind(part)
  const payload = getPayload(part)
  const isStored = part.type === 'file' && part.file.file_data === undefined
  if (isStored || /^https?:/i.test(payload)) return `[${kind}: ${payload}]`
  const [, type] = /^data:([^;,]*)/i.exec(payload) ?? []
  const base64 = payload.slice(payload.indexOf(',') + 1)
  const format = part.type === 'input_audio' ? `audio/${part.input_audio.format}` : type
  const name = part.type === 'file' ? part.file.filename : undefined
  const words = [name, format, `${countBase64Bytes(base64)} bytes`, `#${hashText(base64)}`]
  return `[${kind}: ${words.filter(Boolean).join(', ')}]`
})

/** The text of a response that consists only of media, so that the response does not count as empty. */
export function describeMediaList(media: readonly MediaPart[]): string {
  return media.map(describeMedia).join('\n')
}

export function getPayload(part: MediaPart): string {
  return String(payloads[part.type](part as unknown as Fields))
}

export function countBase64Bytes(base64: string): number {
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0
  return Math.max(0, Math.floor((base64.length * 3) / 4) - padding)
}

function hashText(text: string): string {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return (hash >>> 0).toString(16).padStart(8, '0')
}

/** The content of a text file, or null. Most providers accept only PDF files, but every model reads text. */
export const readTextFile = memoize((part: MediaPart): string | null => {
  if (part.type === 'input_audio') return null
  const payload = part.type === 'image_url' ? part.image_url.url : (part.file.file_data ?? '')
  const [start, head = ''] = /^data:([^,]*),/i.exec(payload) ?? []
  if (part.type === 'image_url' && !/^image\/svg/i.test(head)) return null
  if (payload === '' || /^https?:/i.test(payload) || /pdf/i.test(head)) return null
  const name = part.type === 'file' ? part.file.filename : undefined
  const body = start === undefined ? payload : payload.slice(start.length)
  const isEncoded = start === undefined || /;\s*base64$/i.test(head)
  // A `%` that does not start an escape is literal.
  const text = isEncoded ? decodeFile(body, head) : body.replaceAll(/(%[\da-f]{2})+/gi, decodePercent)
  return text === null
    ? null
    : `<file${name === undefined ? '' : ` name=${JSON.stringify(name)}`}>\n${text}\n</file>`
})

/** Decodes a text file. The media type may name a charset other than UTF-8. */
function decodeFile(base64: string, head: string): string | null {
  const [, charset = 'utf-8'] = /charset="?([\w-]+)/i.exec(head) ?? []
  return decodeBase64(base64, /^text\//i.test(head) ? [charset, 'windows-1252'] : [charset])
}

/**
 * The text of a part for shields: text, names, ids, URLs, and the content of text files (Markdown, CSV, JSON, SVG, …).
 * Returns '' if there is none, as in an image.
 */
export function getReadableText(part: ContentPart): string {
  switch (part.type) {
    case 'text':
      return part.text
    case 'image_url':
      return readPayload(part.image_url.url)
    case 'input_audio':
      return readPayload(part.input_audio.data)
    default: {
      const { filename = '', file_id: id = '', file_data: data = '' } = part.file
      return [filename, id, readPayload(data)].filter((text) => text !== '').join('\n')
    }
  }
}

export function joinReadableTexts(parts: readonly ContentPart[]): string {
  return parts.map(getReadableText).filter(Boolean).join('\n')
}

function readPayload(payload: string): string {
  const [, type, data] = /^data:([^,]*),([^]*)$/i.exec(payload) ?? []
  if (data === undefined) return isPaddedBase64(payload) ? (decodeBase64(payload) ?? '') : payload
  return /;base64$/i.test(type ?? '') ? (decodeBase64(data) ?? '') : decodePercent(data)
}

function isPaddedBase64(text: string): boolean {
  return text.length >= 16 && text.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(text)
}
