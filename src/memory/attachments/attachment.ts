import { checkInput } from '../../core/config/check-input.js'
import * as is from '../../core/config/kind.js'
import { createAddressPolicy } from '../../core/config/address-policy.js'
import { maxTimerMs } from '../../core/base/clock.js'
import { StatewrightError } from '../../core/base/errors.js'

/** Content in memory. */
export interface DataAttachment {
  data: string | Uint8Array
  name: string
  /** The media type. Defaults to the type for the name's extension. */
  mimeType?: string
}

export interface FileAttachment {
  path: string
  mimeType?: string
  /** Defaults to the last part of the path. */
  name?: string
}

/** A page or a file at an http(s) URL with a public address. */
export interface UrlAttachment {
  url: string
  mimeType?: string
  /** Defaults to the last part of the URL's path, or otherwise to the URL's host. */
  name?: string
}

export type Attachment = DataAttachment | FileAttachment | UrlAttachment

/** An attachment as text. */
export interface LoadedAttachment {
  name: string
  /** The media type without parameters, such as `text/html`. */
  mimeType: string
  /** Size of the original content in bytes. */
  bytes: number
  text: string
}

/** Allowed origins and sizes for attachments. */
export interface AttachmentOptions {
  /** Maximum number of bytes to read, and to unpack from compressed content. Defaults to 10,000,000. */
  maxBytes?: number
  /** The number of characters to keep. A note marks truncated text. Defaults to 200,000. */
  maxChars?: number
  /** The number of pages to read from a PDF. A note marks a truncated document. Defaults to 500. */
  maxPages?: number
  /** The limit in milliseconds for reading with redirects, and again for the conversion. Defaults to 15,000. */
  timeoutMs?: number
  /** Cancels the loading, which then rejects with the signal's reason. */
  signal?: AbortSignal
  /**
   * The base folder for paths. Resolved links must stay inside it. Without a base folder, any file that the process can
   * access is readable, so set this option if paths come from users or models.
   */
  root?: string
  /** Private addresses that URLs may lead to, as addresses, CIDR blocks or host names. None by default. */
  allowAddresses?: readonly string[]
}

const timePhrase = `a whole number of milliseconds from 1 to ${maxTimerMs}`

const attachmentOptionsKind = is.section({
  maxBytes: is.count(1),
  maxChars: is.count(1),
  maxPages: is.count(1),
  timeoutMs: is.wholeNumber(1, maxTimerMs, timePhrase),
  signal: is.predicate<AbortSignal>((value) => value instanceof AbortSignal, 'an AbortSignal'),
  root: is.nonEmptyText("a folder's path"),
  allowAddresses: is.list(is.anyText('an address, a CIDR block or a host name'), 'a list of addresses'),
})

export type AttachmentLimits = ReturnType<typeof resolveAttachmentLimits>

export function resolveAttachmentLimits(options: AttachmentOptions) {
  const checked = checkInput(attachmentOptionsKind, options, 'attachment options')
  return {
    maxBytes: checked.maxBytes ?? 10_000_000,
    maxChars: checked.maxChars ?? 200_000,
    maxPages: checked.maxPages ?? 500,
    timeoutMs: checked.timeoutMs ?? 15_000,
    /** Without the option, the signal never aborts. */
    signal: checked.signal ?? new AbortController().signal,
    root: checked.root,
    addresses: createAddressPolicy(checked.allowAddresses ?? []),
  }
}

/** Why an attachment cannot be loaded. */
export type AttachmentErrorCode =
  /** Not exactly one of `data`, `path` and `url` is set. */
  | 'invalid_attachment'
  /** This type cannot be converted to text. */
  | 'unsupported_type'
  /** The content does not match its type. */
  | 'type_mismatch'
  /** More than `maxBytes`, or a PDF that unpacks to too much data. */
  | 'too_large'
  | 'not_found'
  /** The path is a folder, device, pipe or socket. */
  | 'not_a_file'
  | 'outside_root'
  /** The file is not accessible, damaged, or protected by a password. */
  | 'unreadable'
  /** The PDF contains only images. */
  | 'no_text'
  /** The URL is not http(s), or contains a password. */
  | 'invalid_url'
  | 'blocked_address'
  | 'too_many_redirects'
  | 'http_status'
  /** The connection failed. */
  | 'unreachable'
  | 'timeout'

/**
 * An attachment cannot be loaded. `subject` is its name.
 *
 * @example
 * try {
 *   await loadAttachment({ url: 'http://127.0.0.1/' })
 * } catch (error) {
 *   if (error instanceof AttachmentError) console.log(error.code, error.subject) // → blocked_address …
 * }
 */
export class AttachmentError extends StatewrightError {
  override readonly name = 'AttachmentError'
  declare readonly code: AttachmentErrorCode
  /** The claimed type, for `type_mismatch`. */
  readonly claimed: string | undefined
  /** The actual type, for `type_mismatch`. */
  readonly actual: string | undefined

  constructor(
    code: AttachmentErrorCode,
    attachment: string,
    message: string,
    options: ErrorOptions & { claimed?: string; actual?: string } = {},
  ) {
    super(code, `${attachment} ${message}`, attachment, options)
    this.claimed = options.claimed
    this.actual = options.actual
  }
}
