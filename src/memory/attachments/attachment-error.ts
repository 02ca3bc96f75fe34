import { StatewrightError } from '../../core/base/errors.js'

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
