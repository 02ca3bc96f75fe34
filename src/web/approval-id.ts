import { UsageError } from '../core/base/errors.js'

/** A call that waits, as the protocols of pages name it: which call, and which arguments were shown. */
export interface CallReference {
  /** Of a sub-agent's call: with slashes in between. */
  callId: string
  fingerprint: string
}

/** A fingerprint has no tilde in it, an id of a call may. */
const separator = '~'

/** The id of a question: an answer that carries it is for that call with those arguments, and for no other. */
export function toApprovalId({ callId, fingerprint }: CallReference): string {
  return `${callId}${separator}${fingerprint}`
}

/** @throws {UsageError} `unknown_call` for what `approvalIdOf` has never made */
export function parseApprovalId(id: string): CallReference {
  const at = id.lastIndexOf(separator)
  if (at > 0 && at < id.length - 1) return { callId: id.slice(0, at), fingerprint: id.slice(at + 1) }
  throw new UsageError(
    'unknown_call',
    `${JSON.stringify(id.slice(0, 100))} is the id of no question of ours: send it back as it came.`,
    'approvalId',
  )
}
