import { UsageError } from '../core/base/errors.js'

/** A pending call as pages name it. */
export interface CallReference {
  /** For a sub-agent's call: the ids of the calls that lead to it, joined by slashes. */
  callId: string
  /** The message that makes the call, and for a sub-agent's call the messages below it, joined by slashes. */
  messageId?: string | undefined
  /** Identifies the arguments that were shown. */
  fingerprint: string
}

/** Whether an id is that of this call, or of what its tool or its sub-agent asks or calls. */
export function isOfCall(id: string, callId: string): boolean {
  return id === callId || id.startsWith(`${callId}/`)
}

/** The id of an approval request. An answer with this id applies only to this call of this message with these arguments. */
export function toApprovalId({ callId, messageId, fingerprint }: CallReference): string {
  return [callId, ...(messageId === undefined ? [] : [messageId]), fingerprint].join('~')
}

/** Requests of earlier versions have no message. */
const approvalId = /^(.+?)(?:~(m\d+(?:\/m\d+)*))?~([^~]+)$/s

export function findCallReference(id: string): CallReference | undefined {
  const [, callId, messageId, fingerprint] = approvalId.exec(id) ?? []
  return callId === undefined || fingerprint === undefined ? undefined : { callId, messageId, fingerprint }
}

/** @throws {UsageError} `unknown_call` for an id that `toApprovalId` did not make */
export function parseApprovalId(id: string): CallReference {
  const reference = findCallReference(id)
  if (reference) return reference
  throw new UsageError(
    'unknown_call',
    `${JSON.stringify(id.slice(0, 100))} is not the id of an approval request: send the id back unchanged.`,
    'approvalId',
  )
}
