import { formatWakeTime } from '../core/base/clock.js'
import {
  type AgentState,
  type PendingCall,
  type RunInProgress,
  type RunResult,
  isWorkState,
} from '../../machines/agent/run-result.js'
import { formatCallPath, formatCallId, formatArguments } from '../core/format/format-call.js'
import { formatQuestionWord } from './question-word.js'
import { formatElicitation } from './ask-elicitation.js'
import { formatShellOption } from '../core/format/shell-words.js'

/** What a run at rest waits for, as a sentence. */
export function describeWait(result: RunResult): string {
  const { state, pending = [] } = result
  if (state === 'PAUSED' && result.wakeAt !== undefined)
    return `the run sleeps until ${formatWakeTime(result.wakeAt)}: a waker wakes it then, and you can before.`
  if (state === 'PAUSED') return 'the run is paused until it is resumed.'
  return `the run waits: ${pending.map(describeNeed).join('; ') || 'for a message'}.`
}

/** A run that was at work when its process ended needs no answer to go on. */
export function isWorking(result: RunResult | RunInProgress): result is RunInProgress {
  return isWorkState(result.state)
}

export function describeNeed(question: PendingCall): string {
  const { needs, interrupted } = question
  const call = `${describeCall(question)} [${formatCallId(formatQuestionWord(question))}]`
  if (needs === 'elicitation') return `${call}: ${formatElicitation(question.elicitation)}`
  if (needs === 'client') return `${call} needs the client to run it`
  return `${call} needs approval${interrupted ? ': it was interrupted, and may have had its effect already' : ''}`
}

/** The call with all of its arguments, however long: a person approves what they have read. */
export function describeCall(question: PendingCall): string {
  return `${formatCallPath(question)}(${formatArguments(question.arguments, Infinity)})`
}

/**
 * The command that continues a run, or the session of a cancelled run; null when there is none. `carried`: the options that
 * the command needs; null: the session is not stored.
 */
export function formatResumeHint(
  { state, sessionId, pending = [], resumable }: RunResult,
  carried: string | null,
): string | null {
  if (carried === null) {
    return resumable
      ? 'Its session is not stored. To resume such a run later, name a store: --store file:DIR'
      : null
  }
  if (resumable) return `Go on with: ${formatResumeCommand(sessionId, { state, pending })}${carried}`
  if (state === 'CANCELLED') return `Go on with: statewright run --session ${sessionId}${carried} 'Go on.'`
  return null
}

/** What an output of the call looks like. */
export function formatExample({ elicitation }: PendingCall): string {
  if (elicitation === undefined) return 'RESULT'
  const fields = Object.keys(elicitation.schema?.properties ?? {})
  const content = Object.fromEntries(fields.slice(0, 5).map((key) => [key, '…']))
  return JSON.stringify({ action: 'accept', ...(fields.length > 0 && { content }) })
}

/** Includes example answers to the pending calls. */
export function formatResumeCommand(
  sessionId: string,
  { state, pending = [] }: Pick<RunResult, 'pending'> & { state: AgentState },
): string {
  const command = `statewright resume ${sessionId}`
  if (state === 'WAITING_FOR_INPUT' && pending.length === 0) return `${command} 'Your message'`
  const answers = pending.map((question) => {
    const word = formatQuestionWord(question)
    return question.needs === 'approval'
      ? ` ${formatShellOption('approve', word)}`
      : ` ${formatShellOption('output', `${word}=${formatExample(question)}`)}`
  })
  return command + answers.join('')
}
