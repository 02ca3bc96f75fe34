import type { AgentContext } from '../../machines/agent/context.js'
import type { ControlEvent } from '../../machines/agent/machine-events.js'
import { listAnswerableCalls } from '../../machines/agent/to-result.js'
import type { Agent } from '../core/agent/agent-options.js'
import type { SessionMessage } from '../core/sessions/inbox/session-message.js'
import { isOfCall } from './approval-id.js'
import { hasCode } from './chat-errors.js'
import { type AnswerOptions, getAwaitedCall, toOutputValue } from '../core/run/answer-events.js'
import { readElicitationAnswer } from '../core/sessions/elicitation-answer.js'
import { UsageError } from '../core/base/errors.js'
import { toTurn } from './chat-turn.js'
import type { AnyRun } from './live-runs.js'

/** An answer to one pending call. */
export type CallAnswer = { callId: string } & AnswerOptions &
  (
    | { type: 'approve'; editedInput?: unknown }
    | { type: 'reject'; why?: string | undefined }
    | { type: 'toolOutput'; value: unknown; isError?: boolean }
  )

/** What a page answers. */
export interface PageAnswers {
  answers: readonly CallAnswer[]
  /** The id of the page's message that has the calls. An id that is not ours says nothing. */
  messageId?: string | undefined
}

/**
 * Returns the answers to apply. A page repeats its earlier answers with each new one: they are left out when there is a
 * new one.
 *
 * @throws {UsageError} `unknown_call`, `already_answered`, `stale_answer`, `invalid_answer`; then no answer is applied
 */
export function checkAnswers(
  context: AgentContext | undefined,
  { answers, messageId = '' }: PageAnswers,
): readonly CallAnswer[] {
  const open = new Set((context ? listAnswerableCalls(context) : []).map(({ callId }) => callId))
  const isNew = (answer: CallAnswer): boolean => open.has(answer.callId)
  const isKnown = (answer: CallAnswer): boolean =>
    context?.calls.some(({ id }) => isOfCall(answer.callId, id)) ?? false
  const hasNew = answers.some(isNew)
  const selected = answers.filter((answer) => isNew(answer) || !hasNew || !isKnown(answer))
  for (const answer of selected) {
    const { callId, type } = answer
    const needs = type === 'toolOutput' ? 'client' : 'approval'
    const { elicitation } = getAwaitedCall(context, callId, needs, answer)
    if (elicitation && type === 'toolOutput') readElicitationAnswer(elicitation, answer.value)
  }
  if (context && /^m\d+\.answer$/.test(messageId) && toTurn(context).messageId !== messageId)
    throw staleBranchError(messageId)
  return selected
}

/** On another branch, calls may look the same. */
export function staleBranchError(subject: string): UsageError {
  return new UsageError(
    'stale_answer',
    'The answer was meant for another branch of the chat: read the chat again.',
    subject,
  )
}

export function applyAnswers(run: AnyRun, answers: readonly CallAnswer[]): void {
  for (const answer of answers) {
    const { callId } = answer
    if (answer.type === 'approve') run.approve(callId, answer.editedInput as never, answer)
    else if (answer.type === 'reject') run.reject(callId, answer.why, answer)
    else run.addToolOutput(callId, toOutputValue(answer), answer)
  }
}

/**
 * Puts answers into the inbox of a session, where the process that has the session reads them. An answer that another page
 * has given a moment before is left out. Returns why none was taken; null when one was.
 */
export async function sendAnswers(
  agent: Pick<Agent, 'send'>,
  sessionId: string,
  answers: readonly CallAnswer[],
): Promise<unknown> {
  let refusal: unknown = null
  let taken = 0
  for (const answer of answers) {
    try {
      // oxlint-disable-next-line no-await-in-loop -- answers keep their order
      await agent.send(sessionId, answer as SessionMessage)
      taken += 1
    } catch (error) {
      if (!hasCode(error, 'already_answered', 'run_ended')) throw error
      refusal ??= error
    }
  }
  return taken === 0 ? refusal : null
}

const eventTypes = { approve: 'APPROVE', reject: 'REJECT', toolOutput: 'TOOL_OUTPUT' } as const

/** Whether an event of an inbox is this answer: its sender may send it again. An edit of the arguments must be the same. */
export function isAnswerTo(event: ControlEvent, answer: CallAnswer): boolean {
  if (!('callId' in event) || event.type !== eventTypes[answer.type] || event.callId !== answer.callId)
    return false
  if (!isMeant(answer, event)) return false
  if (event.type !== 'APPROVE' || answer.type !== 'approve') return true
  const { editedInput } = answer
  return event.arguments === (editedInput === undefined ? undefined : JSON.stringify(editedInput))
}

/** Whether one of the answered calls still waits. */
export function isAnyOpen(context: AgentContext | undefined, answers: readonly CallAnswer[]): boolean {
  const open = context ? listAnswerableCalls(context) : []
  return answers.some((answer) => open.some((call) => call.callId === answer.callId && isMeant(answer, call)))
}

/** Whether what an answer names of a call fits. */
export function isMeant({ fingerprint, messageId }: AnswerOptions, call: AnswerOptions): boolean {
  return (
    (fingerprint ?? call.fingerprint) === call.fingerprint && (messageId ?? call.messageId) === call.messageId
  )
}
