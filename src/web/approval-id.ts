import { UsageError } from '../core/base/errors.js'

export interface CallReference {
  /** The call's id. For a sub-agent's call, all ids on its path, joined by slashes. */
  callId: string
  /** The message with the call. For a sub-agent's call, all messages on its path, joined by slashes. */
  messageId?: string | undefined
  /** Identifies the arguments that the page displayed. */
  fingerprint: string
}

/** Whether an id belongs to the call itself, or to a request or a call that its tool or sub-agent has made. */
export function isOfCall(id: string, callId: string): boolean {
  return id === callId || id.startsWith(`${callId}/`)
}

export function getCallTitle({ name, path = [] }: { name: string; path?: readonly string[] }): string {
  return [...path, name].join(' › ')
}

/** The id of an approval request. It is valid only for this call in this message with these arguments. */
export function toApprovalId({ callId, messageId, fingerprint }: CallReference): string {
  return [callId, ...(messageId === undefined ? [] : [messageId]), fingerprint].join('~')
}

const approvalId = /^(.+?)(?:~(m\d+(?:\/m\d+)*))?~([^~]+)$/s

export function findCallReference(id: string): CallReference | undefined {
  const [, callId, messageId, fingerprint] = approvalId.exec(id) ?? []
  return callId === undefined || fingerprint === undefined ? undefined : { callId, messageId, fingerprint }
}

/** @throws {UsageError} `unknown_call` for an id that was not created by `toApprovalId` */
export function parseApprovalId(id: string): CallReference {
  const reference = findCallReference(id)
  if (reference) return reference
  const problem = `${JSON.stringify(id.slice(0, 100))} is not an approval request's id.`
  throw new UsageError('unknown_call', `${problem} Send the id back unchanged.`, 'approvalId')
}
