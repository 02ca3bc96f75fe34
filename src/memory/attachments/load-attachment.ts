import { availableParallelism } from 'node:os'
import { extname } from 'node:path'
import { valueOr } from '../../core/base/maybe-promise.js'
import { truncate } from '../../../guards/lib/words.js'
import { runAbortable, CallAbort, limitTime } from '../../core/base/abort.js'
import {
  AttachmentError,
  type Attachment,
  type AttachmentOptions,
  type LoadedAttachment,
  resolveAttachmentLimits,
} from './attachment.js'
import { convertHtml, convertPdf } from './convert-document.js'
import { createSource } from './attachment-source.js'

/** Limits concurrent work. Waiting work starts in order. */
export function createWorkSlots(places: number) {
  const waiting: (() => void)[] = []
  let free = places
  return async <Result>(work: () => Promise<Result>): Promise<Result> => {
    if (free > 0) free -= 1
    else await new Promise<void>((resolve) => void waiting.push(resolve))
    try {
      return await work()
    } finally {
      const next = waiting.shift()
      // The slot goes directly to the next in line, so that later callers do not overtake.
      if (next === undefined) free += 1
      else next()
    }
  }
}

/** Each conversion uses a thread and its memory. Waiting does not count against `timeoutMs`. */
const runConversion = createWorkSlots(Math.min(4, availableParallelism()))

/**
 * Loads an attachment as text. Plain text, Markdown, CSV and JSON are unchanged. HTML (package `html-to-text`) and PDF
 * (package `pdfjs-dist`) are converted to text. The content must match its type.
 *
 * ```ts
 * const report = await loadAttachment({ path: 'report.pdf' }, { root: './uploads' })
 * const handbook = memory({ documents: [report] })
 * ```
 *
 * @throws {AttachmentError} which names the attachment and the problem; {ConfigError} for options; the signal's reason
 * when it aborts
 */
export async function loadAttachment(
  attachment: Attachment,
  options: AttachmentOptions = {},
): Promise<LoadedAttachment> {
  const limits = resolveAttachmentLimits(options)
  const source = createSource(attachment)
  const { name } = source
  const { signal: outer, timeoutMs, maxChars } = limits
  const within = async <Result>(task: string, work: (signal: AbortSignal) => Promise<Result>) => {
    const deadline = new CallAbort()
    const late = (): Error => {
      const message = `took longer than ${timeoutMs} ms to be ${task}. Raise timeoutMs to wait longer.`
      deadline.abort(new AttachmentError('timeout', name, message))
      return deadline.reason as Error
    }
    const both = AbortSignal.any([outer, deadline.signal])
    return await limitTime(
      { ms: timeoutMs, late },
      runAbortable(both, ({ signal }) => work(signal)),
    )
  }

  const { bytes, contentType } = await within('read', (signal) => source.read(limits, signal))
  const type = getMediaType(name, source.mimeType, contentType)
  const decoded = decodeContent(bytes, type, name, contentType)
  const convert = async () =>
    await within('converted', (signal) =>
      decoded === undefined ? convertPdf(bytes, name, limits, signal) : convertHtml(decoded, name, signal),
    )
  const text =
    decoded !== undefined && type.kind !== 'html'
      ? decoded
      : await runAbortable(outer, () => runConversion(convert))
  return { name, mimeType: type.mimeType, bytes: bytes.length, text: cutText(text, maxChars) }
}

function cutText(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text
  return `${truncate(text, maxChars)}\n\n[Truncated: only the first ${maxChars} characters are included.]`
}

/** The first bytes of types that are not text, for error messages. */
const signatures: [RegExp, string][] = [
  [/^%PDF-/, 'a PDF'],
  [/^PK\x03\x04/, 'a ZIP archive, the format of Office documents'],
  [/^\x1F\x8B/, 'compressed with gzip'],
  [/^\x89PNG/, 'a PNG image'],
  [/^\xFF\xD8\xFF/, 'a JPEG image'],
  [/^GIF8/, 'a GIF image'],
  [/^\xD0\xCF\x11\xE0/, 'an old Office document'],
]

/** Returns undefined for a PDF. @throws {AttachmentError} `type_mismatch` */
function decodeContent(bytes: Uint8Array, type: MediaType, name: string, contentType: string | undefined) {
  const head = new TextDecoder('latin1').decode(bytes.subarray(0, 16))
  const signature = signatures.find(([beginning]) => beginning.test(head))?.[1]
  const mismatch = (actual: string, hint = '', cause?: unknown) => {
    const message = `claims to be ${type.mimeType} (by its ${type.from}) but is ${actual}.${hint}`
    return new AttachmentError('type_mismatch', name, message, { claimed: type.mimeType, actual, cause })
  }
  if (type.kind === 'pdf') {
    if (head.startsWith('%PDF-')) return undefined
    throw mismatch(signature ?? (bytes.length === 0 ? 'empty' : 'not a PDF'))
  }
  if (signature !== undefined) throw mismatch(signature)
  const text = decodeText(bytes, type.charset)
  if (text === undefined) {
    const hint = ` Specify its charset, as in '${type.mimeType}; charset=windows-1252', or convert it to UTF-8.`
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
    throw mismatch(
      'text/html',
      " The server sent a web page instead. To read the page, pass mimeType 'text/html'.",
    )
  }
  return text
}

const byteOrderMarks = { feff: 'utf-16be', fffe: 'utf-16le', efbbbf: 'utf-8' }

/** Returns undefined for invalid bytes or an unknown charset. */
function decodeText(bytes: Uint8Array, charset: string | undefined): string | undefined {
  const start = Buffer.from(bytes.subarray(0, 3)).toString('hex')
  const marked = Object.entries(byteOrderMarks).find(([mark]) => start.startsWith(mark))
  return valueOr(
    () => new TextDecoder(marked?.[1] ?? charset ?? 'utf-8', { fatal: true }).decode(bytes),
    undefined,
  )
}

const isHtmlPage = (text: string): boolean => /^\s*<(!doctype html|html)\b/i.test(text.slice(0, 1000))

type TextKind = 'text' | 'json' | 'html' | 'pdf'

interface MediaType {
  /** The type without parameters, in lower case. */
  mimeType: string
  kind: TextKind
  charset: string | undefined
  /** The source of the type, because a name is less reliable than an explicit type. */
  from: 'mimeType' | 'name' | 'Content-Type'
}

const extensions: Record<string, string> = {
  '.txt': 'text/plain',
  '.text': 'text/plain',
  '.log': 'text/plain',
  '.md': 'text/markdown',
  '.markdown': 'text/markdown',
  '.csv': 'text/csv',
  '.tsv': 'text/tab-separated-values',
  '.xml': 'text/xml',
  '.yaml': 'text/yaml',
  '.yml': 'text/yaml',
  '.html': 'text/html',
  '.htm': 'text/html',
  '.json': 'application/json',
  '.pdf': 'application/pdf',
}

const supportedTypes = 'plain text, Markdown, CSV, HTML, JSON and PDF'

/** An explicit type, or else the type for the name, or else the one from the server. @throws {AttachmentError} */
function getMediaType(name: string, mimeType?: string, contentType?: string): MediaType {
  const byName = extensions[extname(name).toLowerCase()]
  const charset = findCharset(mimeType) ?? findCharset(contentType)
  const [claimed, from] =
    mimeType !== undefined
      ? ([mimeType, 'mimeType'] as const)
      : byName !== undefined
        ? ([byName, 'name'] as const)
        : ([contentType ?? '', 'Content-Type'] as const)
  const essence = claimed.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  const kind = findTextKind(essence)
  if (kind !== undefined) return { mimeType: essence, kind, charset, from }
  throw new AttachmentError(
    'unsupported_type',
    name,
    essence === ''
      ? `has an unknown type. Pass its mimeType. Supported types are ${supportedTypes}.`
      : `has the type ${essence.slice(0, 100)}, which cannot be converted to text. Supported types are ${supportedTypes}.`,
  )
}

function findTextKind(essence: string): TextKind | undefined {
  if (essence === 'application/pdf' || essence === 'application/x-pdf') return 'pdf'
  if (essence === 'text/html' || essence === 'application/xhtml+xml') return 'html'
  if (/^(application|text)\/([\w.-]+\+)?json$/.test(essence)) return 'json'
  if (/^text\/[\w.+-]+$/.test(essence) || /^application\/(xml|yaml|x-ndjson)$/.test(essence)) return 'text'
  return undefined
}

function findCharset(type: string | undefined): string | undefined {
  return /;\s*charset="?([^\s;"]+)/i.exec(type ?? '')?.[1]
}
