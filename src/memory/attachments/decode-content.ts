import { AttachmentError } from './attachment-error.js'
import type { MediaType } from './media-type.js'

/** How files begin that are no text, for people who wonder what they have. */
const signatures: [RegExp, string][] = [
  [/^%PDF-/, 'a PDF'],
  [/^PK\x03\x04/, 'a ZIP archive, as Office documents are'],
  [/^\x1F\x8B/, 'compressed with gzip'],
  [/^\x89PNG/, 'a PNG image'],
  [/^\xFF\xD8\xFF/, 'a JPEG image'],
  [/^GIF8/, 'a GIF image'],
  [/^\xD0\xCF\x11\xE0/, 'an old Office document'],
]

/**
 * Holds the content against what it claims to be, and decodes what is text. A byte order mark counts first, then the
 * charset that was named, then it has to be UTF-8.
 * @returns the text; undefined for a PDF
 * @throws {AttachmentError} `type_mismatch`
 */
export function decodeContent(
  bytes: Uint8Array,
  type: MediaType,
  name: string,
  contentType: string | undefined,
): string | undefined {
  const head = new TextDecoder('latin1').decode(bytes.subarray(0, 16))
  const signature = signatures.find(([beginning]) => beginning.test(head))?.[1]
  const mismatch = (actual: string, hint = '', cause?: unknown) => {
    const message = `claims to be ${type.mimeType} (by its ${type.from}) and is ${actual}.${hint}`
    return new AttachmentError('type_mismatch', name, message, { claimed: type.mimeType, actual, cause })
  }
  if (type.kind === 'pdf') {
    if (head.startsWith('%PDF-')) return undefined
    throw mismatch(signature ?? (bytes.length === 0 ? 'empty' : 'no PDF'))
  }
  if (signature !== undefined) throw mismatch(signature)
  const text = decodeText(bytes, type.charset)
  if (text === undefined) {
    const hint = ` Name its charset, as in '${type.mimeType}; charset=windows-1252', or convert it to UTF-8.`
    throw mismatch(`not ${type.charset ?? 'UTF-8'} text`, hint)
  }
  if (text.includes('\0')) throw mismatch('binary data')
  if (type.kind === 'json') {
    try {
      JSON.parse(text)
    } catch (error) {
      throw mismatch('not valid JSON', '', error)
    }
  }
  if (
    type.from === 'name' &&
    type.kind === 'text' &&
    isHtmlPage(text) &&
    /^text\/html\b/i.test(contentType ?? '')
  ) {
    throw mismatch('text/html', " The server sent a page about it. Pass mimeType 'text/html' to read that.")
  }
  return text
}

/** Undefined when the bytes are no text in that charset, or the charset is unknown. */
function decodeText(bytes: Uint8Array, charset: string | undefined): string | undefined {
  const [first, second] = bytes
  const marked =
    first === 0xfe && second === 0xff
      ? 'utf-16be'
      : first === 0xff && second === 0xfe
        ? 'utf-16le'
        : undefined
  const utf8Marked = first === 0xef && second === 0xbb && bytes[2] === 0xbf
  try {
    return new TextDecoder(marked ?? (utf8Marked ? 'utf-8' : (charset ?? 'utf-8')), { fatal: true }).decode(
      bytes,
    )
  } catch {
    return undefined
  }
}

function isHtmlPage(text: string): boolean {
  return /^\s*<(!doctype html|html)\b/i.test(text.slice(0, 1000))
}
