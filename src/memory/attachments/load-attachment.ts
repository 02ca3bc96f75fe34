import { availableParallelism } from 'node:os'
import { truncate } from '../../../guards/lib/cut.js'
import { runAbortable, CallAbort } from '../../core/base/abort.js'
import { limitTime } from '../../core/base/time-limit.js'
import { AttachmentError } from './attachment-error.js'
import type { Attachment, AttachmentOptions, LoadedAttachment } from './attachment.js'
import { convertHtml, convertPdf } from './convert-document.js'
import { decodeContent } from './decode-content.js'
import { getMediaType } from './media-type.js'
import { resolveAttachmentLimits } from './attachment-limits.js'
import { createSource } from './attachment-source.js'
import { WorkSlots } from './work-slots.js'

/** Each takes a thread and its memory; waiting for a place does not count against `timeoutMs`. */
const conversionSlots = new WorkSlots(Math.min(4, availableParallelism()))

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
  const limits = resolveAttachmentLimits(options)
  const source = createSource(attachment)
  const { name } = source
  const { signal: outer, timeoutMs, maxChars } = limits
  const within = async <Result>(task: string, work: (signal: AbortSignal) => Promise<Result>) => {
    const message = `took longer than ${timeoutMs} ms to be ${task}. Raise timeoutMs to wait longer.`
    return await runWithDeadline(timeoutMs, outer, () => new AttachmentError('timeout', name, message), work)
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
      : await runAbortable(outer, () => conversionSlots.run(convert))
  return { name, mimeType: type.mimeType, bytes: bytes.length, text: cutText(text, maxChars) }
}

/** A text of which at most `maxChars` are kept, and a note about it when that is not all. */
function cutText(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text
  return `${truncate(text, maxChars)}\n\n[Cut here: only the first ${maxChars} characters are kept.]`
}

/** Does `work` within `ms`; its signal aborts when the time is over or `outer` aborts, and it is waited for no longer. */
async function runWithDeadline<Result>(
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
  return limitTime(
    { ms, late },
    runAbortable(AbortSignal.any([outer, deadline.signal]), ({ signal }) => work(signal)),
  )
}
