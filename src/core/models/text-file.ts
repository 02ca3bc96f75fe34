import type { MediaPart } from '../../../machines/agent/messages.js'
import { decodePercent } from '../base/text.js'

/**
 * The content of a text file (Markdown, CSV, JSON, SVG, source code), or null for any other part and for an address. Most providers
 * accept only PDF as a file, but every model reads text.
 */
export function readTextFile(part: MediaPart): string | null {
  const known = texts.get(part)
  if (known !== undefined) return known
  const text = findText(part)
  texts.set(part, text)
  return text
}

/** Parts never change, and are sent again with each request. */
const texts = new WeakMap<MediaPart, string | null>()

function findText(part: MediaPart): string | null {
  if (part.type === 'input_audio') return null
  const payload = part.type === 'image_url' ? part.image_url.url : (part.file.file_data ?? '')
  const [start, head = ''] = /^data:([^,]*),/i.exec(payload) ?? []
  if (part.type === 'image_url' && !/^image\/svg/i.test(head)) return null
  if (payload === '' || /^https?:/i.test(payload) || /pdf/i.test(head)) return null
  const name = part.type === 'file' ? part.file.filename : undefined
  const body = start === undefined ? payload : payload.slice(start.length)
  const isEncoded = start === undefined || /;\s*base64$/i.test(head)
  // A sign % that begins no escape stands for itself.
  const text = isEncoded ? decodeBase64(body, head) : body.replaceAll(/(%[\da-f]{2})+/gi, decodePercent)
  return text === null
    ? null
    : `<file${name === undefined ? '' : ` name=${JSON.stringify(name)}`}>\n${text}\n</file>`
}

/** Returns null for binary data. The type may name an encoding other than UTF-8. */
function decodeBase64(base64: string, head: string): string | null {
  const [, charset = 'utf-8'] = /charset="?([\w-]+)/i.exec(head) ?? []
  try {
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))
    const text =
      decodeBytes(bytes, charset) ?? (/^text\//i.test(head) ? decodeBytes(bytes, 'windows-1252') : null)
    // oxlint-disable-next-line no-control-regex -- a text has none of them
    return text === null || /[\0-\x08\x0e-\x1a\x1c-\x1f]/.test(text) ? null : text
  } catch {
    return null
  }
}

function decodeBytes(bytes: Uint8Array, charset: string): string | null {
  try {
    return new TextDecoder(charset, { fatal: true }).decode(bytes)
  } catch {
    return null
  }
}
