import type { ContentPart } from '../../../machines/agent/messages.js'
import { decodePercent } from '../base/text.js'

/**
 * What of a part shields can read: a text; names, ids and addresses; and the content of files, images and recordings that
 * are texts themselves (Markdown, CSV, JSON, SVG, …). '' where there is nothing to read, as in a picture.
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

function readPayload(payload: string): string {
  const [, type, data] = /^data:([^,]*),([^]*)$/i.exec(payload) ?? []
  if (data === undefined) return isBase64(payload) ? (decodeText(payload) ?? '') : payload
  return /;base64$/i.test(type ?? '') ? (decodeText(data) ?? '') : decodePercent(data)
}

function isBase64(text: string): boolean {
  return text.length >= 16 && text.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(text)
}

/** Null for bytes that are no text. */
function decodeText(base64: string): string | null {
  try {
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    // oxlint-disable-next-line no-control-regex -- what has them is no text
    return /[\0-\x08\x0e-\x1a\x1c-\x1f]/.test(text) ? null : text
  } catch {
    return null
  }
}
