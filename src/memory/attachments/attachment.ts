import { checkInput } from '../../core/config/check-input.js'
import {
  anyText,
  count,
  list,
  nonEmptyText,
  predicate,
  section,
  wholeNumber,
} from '../../core/config/kind.js'
import { type AddressPolicy, createAddressPolicy } from '../../core/config/address-policy.js'
import { StatewrightError } from '../../core/base/errors.js'

/** Content that is at hand. */
export interface DataAttachment {
  /** Bytes, or the text itself. */
  data: string | Uint8Array
  name: string
  /** Default: from the name's extension. */
  mimeType?: string
}

/** A file. */
export interface FileAttachment {
  path: string
  mimeType?: string
  /** Default: the last part of the path. */
  name?: string
}

/** A page or a file at an http(s) URL on a public address. */
export interface UrlAttachment {
  url: string
  mimeType?: string
  /** Default: the last part of the URL's path, else its host. */
  name?: string
}

/** What can be loaded: data, a file, or a URL. */
export type Attachment = DataAttachment | FileAttachment | UrlAttachment

/** An attachment as text. */
export interface LoadedAttachment {
  name: string
  /** Without parameters: `text/html`. */
  mimeType: string
  /** Size of the content before it became text, in bytes. */
  bytes: number
  text: string
}

/** Where attachments may come from, and how large they may be. */
export interface AttachmentOptions {
  /** Bytes that are read at most, and what compressed content may unpack to. Default 10 MB (10 000 000). */
  maxBytes?: number
  /** Characters of text that are kept; a note says when it is cut. Default 200 000. */
  maxChars?: number
  /** Pages of a PDF that are read; a note says when there are more. Default 500. */
  maxPages?: number
  /** Milliseconds that reading may take as a whole, redirects included, and again turning it into text. Default 15 000. */
  timeoutMs?: number
  /** Stops the loading, which then rejects with the signal's reason. */
  signal?: AbortSignal
  /**
   * The folder that paths are relative to and must stay in, symbolic links resolved. Without it any file of this process
   * can be read: set it whenever a path comes from a user or a model.
   */
  root?: string
  /** Private addresses that URLs may lead to nevertheless: addresses, CIDR blocks or host names. Default: none. */
  allowAddresses?: readonly string[]
}

const maxTimerMs = 2_147_483_647
const timePhrase = `a whole number of milliseconds from 1 to ${maxTimerMs}`

const attachmentOptionsKind = section({
  maxBytes: count(1),
  maxChars: count(1),
  maxPages: count(1),
  timeoutMs: wholeNumber(1, maxTimerMs, timePhrase),
  signal: predicate<AbortSignal>((value) => value instanceof AbortSignal, 'an AbortSignal'),
  root: nonEmptyText('the path of a folder'),
  allowAddresses: list(anyText('an address, a CIDR block or a host name'), 'a list of addresses'),
})

export interface AttachmentLimits {
  maxBytes: number
  maxChars: number
  maxPages: number
  timeoutMs: number
  /** One that never aborts when none was given. */
  signal: AbortSignal
  root: string | undefined
  addresses: AddressPolicy
}

/** @throws {ConfigError} */
export function resolveAttachmentLimits(options: AttachmentOptions): AttachmentLimits {
  const checked = checkInput(attachmentOptionsKind, options, 'attachment options')
  return {
    maxBytes: checked.maxBytes ?? 10_000_000,
    maxChars: checked.maxChars ?? 200_000,
    maxPages: checked.maxPages ?? 500,
    timeoutMs: checked.timeoutMs ?? 15_000,
    signal: checked.signal ?? new AbortController().signal,
    root: checked.root,
    addresses: createAddressPolicy(checked.allowAddresses ?? []),
  }
}

/** Why an attachment cannot be loaded. */
export type AttachmentErrorCode =
  /** It is no attachment: neither data, path nor url, or more than one. */
  | 'invalid_attachment'
  /** No text is made of this type. */
  | 'unsupported_type'
  /** The content is not what it claims to be. */
  | 'type_mismatch'
  /** More than `maxBytes`, or a PDF that unpacks without end. */
  | 'too_large'
  | 'not_found'
  /** A folder, device, pipe or socket. */
  | 'not_a_file'
  | 'outside_root'
  /** It cannot be read: no permission, damaged, protected by a password. */
  | 'unreadable'
  /** A PDF of images only. */
  | 'no_text'
  /** Not http(s), or with a password in it. */
  | 'invalid_url'
  | 'blocked_address'
  | 'too_many_redirects'
  | 'http_status'
  /** No connection, or one that broke. */
  | 'unreachable'
  | 'timeout'

/**
 * An attachment that cannot be loaded. `subject` is its name.
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
  /** What it claims to be, on a `type_mismatch`. */
  readonly claimed: string | undefined
  /** What it is, on a `type_mismatch`. */
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
