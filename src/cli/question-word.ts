import type { PendingCall } from '../../machines/agent/run-result.js'

/** Characters of a fingerprint that are shown: enough that no other arguments have the same beginning. */
const shownFingerprintLength = 16

/**
 * The name of a pending call on the command line: its id and the beginning of its fingerprint. The id alone is not enough:
 * the arguments may have changed since they were shown.
 */
export function formatQuestionWord({
  callId,
  fingerprint,
}: Pick<PendingCall, 'callId' | 'fingerprint'>): string {
  return `${callId}@${fingerprint.slice(0, shownFingerprintLength)}`
}

/** A call that an answer names. */
export interface CallMatch {
  call: PendingCall
  /** `asked`: the fingerprint matches. `other`: the call has other arguments. `bare`: there is no fingerprint. */
  kind: 'asked' | 'other' | 'bare'
  /** The text after `=`. */
  rest: string | undefined
}

/** Finds the call at the beginning of an answer. Ids may contain `@` and `=`: the longest match counts. */
export function matchCall(text: string, pending: readonly PendingCall[]): CallMatch | undefined {
  const fitting = pending.filter(({ callId }) => text.startsWith(callId))
  for (const call of fitting.sort((a, b) => b.callId.length - a.callId.length)) {
    const read = /^(?:@([0-9a-f]+))?(?:=([^]*))?$/.exec(text.slice(call.callId.length))
    if (read === null) continue
    const [, mark, rest] = read
    if (mark === undefined) return { call, kind: 'bare', rest }
    const isAsked = mark.length >= shownFingerprintLength && call.fingerprint.startsWith(mark)
    return { call, kind: isAsked ? 'asked' : 'other', rest }
  }
  return undefined
}
