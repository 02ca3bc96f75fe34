import { formatWakeTime } from '../core/base/clock.js'
import {
  type AgentState,
  type Elicitation,
  type PendingCall,
  type RunInProgress,
  type RunResult,
  isWorkState,
} from '../../machines/agent/run-result.js'
import { escapeInvisible, formatArguments, formatCallId, formatCallPath } from '../core/format/format-call.js'
import { shorten } from '../core/format/format-words.js'
import { formatUntil } from '../core/format/run-summary.js'
import { formatShellOption } from '../core/format/shell-words.js'

/** Large enough that no other arguments have the same digits. */
const shownFingerprintLength = 16

/** The id and the start of the fingerprint, because the arguments may have changed since they were shown. */
export function formatCallWord({ callId, fingerprint }: Pick<PendingCall, 'callId' | 'fingerprint'>): string {
  return `${callId}@${fingerprint.slice(0, shownFingerprintLength)}`
}

export interface CallMatch {
  call: PendingCall
  /** `same` has a matching fingerprint, `changed` has the fingerprint of other arguments, and `bare` has none. */
  kind: 'same' | 'changed' | 'bare'
  rest: string | undefined
}

/** Finds the call at the start of an answer. Ids may contain `@` and `=`, so the longest match applies. */
export function matchCall(text: string, pending: readonly PendingCall[]): CallMatch | undefined {
  const candidates = pending.filter(({ callId }) => text.startsWith(callId))
  for (const call of candidates.sort((a, b) => b.callId.length - a.callId.length)) {
    const match = /^(?:@([0-9a-f]+))?(?:=([^]*))?$/.exec(text.slice(call.callId.length))
    if (match === null) continue
    const [, mark, rest] = match
    if (mark === undefined) return { call, kind: 'bare', rest }
    const isSame = mark.length >= shownFingerprintLength && call.fingerprint.startsWith(mark)
    return { call, kind: isSame ? 'same' : 'changed', rest }
  }
  return undefined
}

/** Describes the pending input of a resting run. `isShown` means that the user has just read the calls. */
export function describeWait(result: RunResult, isShown = false): string {
  const { state, pending = [] } = result
  if (isShown && pending.length > 0)
    return `the run is waiting for ${pending.length === 1 ? 'an answer' : `${pending.length} answers`}.`
  if (state === 'PAUSED' && result.wakeAt !== undefined)
    return `the run sleeps until ${formatWakeTime(result.wakeAt)}. You can also resume it earlier.`
  if (state === 'PAUSED') return 'the run is paused until it is resumed.'
  return `the run is waiting: ${pending.map(describeNeed).join('; ') || 'for a message'}.`
}

/** Whether the run was active when its process ended. Such a run continues without an answer. */
export function isWorking(result: RunResult | RunInProgress): result is RunInProgress {
  return isWorkState(result.state)
}

export function describeNeed(pending: PendingCall): string {
  const { needs, interrupted, expiresAt } = pending
  const call = `${describeCall(pending)} [${formatCallId(formatCallWord(pending))}]`
  if (needs === 'elicitation') return `${call}: ${formatElicitation(pending.elicitation)}`
  if (needs === 'client') return `${call} must be run by the client`
  return `${call} needs approval${formatUntil(expiresAt)}${interrupted ? '. It was interrupted and may already have taken effect' : ''}`
}

/** Shows all arguments in full, because people approve only content that they have read. */
export function describeCall(pending: PendingCall): string {
  return `${formatCallPath(pending)}(${formatArguments(pending.arguments, Infinity)})`
}

/** The server's name comes first, so that the server's text is not mistaken for ours. */
export function formatElicitation({ server, message, mode, url }: Elicitation, width = 400): string {
  const words = escapeInvisible(shorten(message, width))
  return `${escapeInvisible(server)} asks: ${words}${mode === 'url' ? ` ${escapeInvisible(url)}` : ''}`
}

/** The hint about how to continue a run, if there is one. `carried` is null if the session is not stored. */
export function formatResumeHint(
  { state, sessionId, pending = [], resumable }: RunResult,
  carried: string | null,
): string | null {
  if (carried === null && resumable)
    return 'This session is not stored. To resume a run later, specify a store: --store file:DIR'
  if (resumable) return `Continue with: ${formatResumeCommand(sessionId, { state, pending })}${carried}`
  if (carried === null || state !== 'CANCELLED') return null
  return `Continue with: statewright run --session ${sessionId}${carried} 'Continue.'`
}

export function formatExample({ elicitation }: PendingCall): string {
  if (elicitation === undefined) return 'RESULT'
  const fields = Object.keys(elicitation.schema?.properties ?? {})
  const content = Object.fromEntries(fields.slice(0, 5).map((key) => [key, '…']))
  return JSON.stringify({ action: 'accept', ...(fields.length > 0 && { content }) })
}

export function formatResumeCommand(
  sessionId: string,
  { state, pending = [] }: Pick<RunResult, 'pending'> & { state: AgentState },
): string {
  const command = `statewright resume ${sessionId}`
  if (state === 'WAITING_FOR_INPUT' && pending.length === 0) return `${command} 'Your message'`
  const answers = pending.map((call) => {
    const word = formatCallWord(call)
    if (call.needs === 'approval') return ` ${formatShellOption('approve', word)}`
    return ` ${formatShellOption('output', `${word}=${formatExample(call)}`)}`
  })
  return command + answers.join('')
}
