import type { CallTarget, PendingView } from '../protocol.js'

/** The part of a call that an answer names. */
export function toTarget({ callId, fingerprint, messageId }: PendingView): CallTarget {
  return { callId, fingerprint, ...(messageId !== undefined && { messageId }) }
}
