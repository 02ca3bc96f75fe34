import { ModelError } from '../provider.js'

/** Characters that one event, one body or one answer may have. Beyond that it is no answer, and it would fill memory. */
export const maxResponseLength = 64 * 1024 * 1024

/** How long a connection may take to close after `[DONE]`, in milliseconds, before it is given up. */
export const closeTimeoutMs = 1000

/** How long the usage and `[DONE]` may take after the finish reason, in milliseconds: then the answer is taken as it is. */
export const trailingTimeoutMs = 1000

export function refuseTooLarge(length: number): void {
  if (length <= maxResponseLength) return
  throw new ModelError({
    kind: 'fatal',
    code: 'response_too_large',
    message: `The provider's answer is larger than ${maxResponseLength / 1024 / 1024} MB. Check the base URL and what the server sends.`,
  })
}
