import { AttachmentError } from './attachment-error.js'

export function tooLarge(name: string, maxBytes: number): AttachmentError {
  return new AttachmentError(
    'too_large',
    name,
    `is larger than ${maxBytes} bytes. Raise maxBytes if it is meant to be.`,
  )
}
