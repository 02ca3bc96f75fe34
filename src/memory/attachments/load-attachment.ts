import { availableParallelism } from 'node:os'
import { truncate } from '../../../guards/lib/cut.js'
import { abortable, CallAbort } from '../../core/base/abort.js'
import { within } from '../../core/base/time-limit.js'
import { AttachmentError } from './attachment-error.js'
import type { Attachment, AttachmentOptions, LoadedAttachment } from './attachment.js'
import { convertHtml, convertPdf } from './convert.js'
import { decodeContent } from './decode-content.js'
import { mediaTypeOf } from './media-type.js'
import { resolveLimits } from './options.js'
import { sourceOf } from './source.js'
import { Turns } from './turns.js'

/** Each takes a thread and its memory; waiting for a place does not count against `timeoutMs`. */
const conversions = new Turns(Math.min(4, availableParallelism()))

/**
 * Loads an attachment and makes text of it: plain text, Markdown, CSV and JSON as they are, HTML (package
 * `html-to-text`) and PDF (package `pdfjs-dist`) as the text in them. Its type is held against its content.
 *
 * ```ts
 * const report = await loadAttachment({ path: 'report.pdf' }, { root: './uploads' })
 * const handbook = memory({ documents: [report] })
 * ```
 *
 * @throws {AttachmentError} which names the attachment and says what is wrong; {ConfigError} for options; the signal's
 * reason when it aborts
 */
export async function loadAttachment(
  attachment: Attachment,
  options: AttachmentOptions = {},
): Promise<LoadedAttachment> {
  const limits = resolveLimits(options)
  const source = sourceOf(attachment)
  const { name } = source
  const { signal: outer, timeoutMs, maxChars } = limits
  const within = async <Result>(task: string, work: (signal: AbortSignal) => Promise<Result>) => {
    const message = `took longer than ${timeoutMs} ms to be ${task}. Raise timeoutMs to wait longer.`
    return await withDeadline(timeoutMs, outer, () => new AttachmentError('timeout', name, message), work)
  }

  const { bytes, contentType } = await within('read', (signal) => source.read(limits, signal))
  const type = mediaTypeOf(name, source.mimeType, contentType)
  const decoded = decodeContent(bytes, type, name, contentType)
  const convert = async () =>
    await within('converted', (signal) =>
      decoded === undefined ? convertPdf(bytes, name, limits, signal) : convertHtml(decoded, name, signal),
    )
  const text =
    decoded !== undefined && type.kind !== 'html'
      ? decoded
      : await abortable(outer, () => conversions.take(convert))
  return { name, mimeType: type.mimeType, bytes: bytes.length, text: cutText(text, maxChars) }
}

/** A text of which at most `maxChars` are kept, and a note about it when that is not all. */
function cutText(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text
  return `${truncate(text, maxChars)}\n\n[Cut here: only the first ${maxChars} characters are kept.]`
}

/** Does `work` within `ms`; its signal aborts when the time is over or `outer` aborts, and it is waited for no longer. */
async function withDeadline<Result>(
  ms: number,
  outer: AbortSignal,
  tooLate: () => Error,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const deadline = new CallAbort()
  const late = (): Error => {
    deadline.abort(tooLate())
    return deadline.reason as Error
  }
  return within(
    { ms, late },
    abortable(AbortSignal.any([outer, deadline.signal]), ({ signal }) => work(signal)),
  )
}
