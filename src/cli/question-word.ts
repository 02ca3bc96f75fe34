import type { PendingCall } from '../../machines/agent/run-result.js'

/** How much of a fingerprint is written: nobody finds other arguments with the same beginning. */
const shownFingerprintLength = 16

/**
 * A call that waits, as it is named on the command line: its id, and what it asked for. Ids alone say little: many
 * providers number their calls anew in each answer, and `call_1` may be another call by the time it is approved.
 */
export function formatQuestionWord({
  callId,
  fingerprint,
}: Pick<PendingCall, 'callId' | 'fingerprint'>): string {
  return `${callId}@${fingerprint.slice(0, shownFingerprintLength)}`
}

/** What was typed for a call. */
export interface CallMatch {
  call: PendingCall
  /** `asked`: it waits for just this. `other`: for something else by now. `bare`: nobody said for what. */
  kind: 'asked' | 'other' | 'bare'
  /** What follows a `=`. */
  rest: string | undefined
}

/** The call that an answer begins with. An id may have a `@` or a `=` in it, too: the longest that fits is meant. */
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
