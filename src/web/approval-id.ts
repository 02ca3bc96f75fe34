import { UsageError } from '../core/base/errors.js'

/** A pending call as page protocols name it: the call's id, and a fingerprint of the arguments that were shown. */
export interface CallReference {
  /** For a sub-agent's call: the ids of the calls that lead to it, joined by slashes. */
  callId: string
  fingerprint: string
}

/** Whether an id is that of this call, or of what its tool or its sub-agent asks or calls. */
export function isOfCall(id: string, callId: string): boolean {
  return id === callId || id.startsWith(`${callId}/`)
}

/** A fingerprint contains no tilde; a call id may. */
const separator = '~'

/** The id of an approval request. An answer with this id applies only to this call with these arguments. */
export function toApprovalId({ callId, fingerprint }: CallReference): string {
  return `${callId}${separator}${fingerprint}`
}

/** @throws {UsageError} `unknown_call` for an id that `toApprovalId` did not make */
export function parseApprovalId(id: string): CallReference {
  const at = id.lastIndexOf(separator)
  if (at > 0 && at < id.length - 1) return { callId: id.slice(0, at), fingerprint: id.slice(at + 1) }
  throw new UsageError(
    'unknown_call',
    `${JSON.stringify(id.slice(0, 100))} is not the id of an approval request: send the id back unchanged.`,
    'approvalId',
  )
}
