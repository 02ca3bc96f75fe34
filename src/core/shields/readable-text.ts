import type { ContentPart } from '../../../machines/agent/messages.js'
import { decodeBase64, decodePercent } from '../base/text.js'

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

function readPayload(payload: string): string {
  const [, type, data] = /^data:([^,]*),([^]*)$/i.exec(payload) ?? []
  if (data === undefined) return isBase64(payload) ? (decodeBase64(payload) ?? '') : payload
  return /;base64$/i.test(type ?? '') ? (decodeBase64(data) ?? '') : decodePercent(data)
}

function isBase64(text: string): boolean {
  return text.length >= 16 && text.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(text)
}
