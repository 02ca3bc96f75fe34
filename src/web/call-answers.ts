import type { AgentContext } from '../../machines/agent/context.js'
import { listAnswerableCalls } from '../../machines/agent/to-result.js'
import { getAwaitedCall } from '../core/run/awaited-call.js'
import { toOutputValue } from '../core/run/tool-output-event.js'
import type { AnyRun } from './live-runs.js'

/** An answer to one pending call. */
export type CallAnswer = { callId: string; fingerprint?: string | undefined } & (
  | { type: 'approve'; editedInput?: unknown }
  | { type: 'reject'; why?: string | undefined }
  | { type: 'toolOutput'; value: unknown; isError?: boolean }
)

/**
 * Returns the answers to apply. A page repeats its earlier answers with each new one: they are left out when there is a
 * new one.
 *
 * @throws {UsageError} `unknown_call`, `already_answered`, `stale_answer`; then no answer is applied
 */
export function checkAnswers(
  context: AgentContext | undefined,
  answers: readonly CallAnswer[],
): readonly CallAnswer[] {
  const open = new Set((context ? listAnswerableCalls(context) : []).map(({ callId }) => callId))
  const isNew = (answer: CallAnswer): boolean => open.has(answer.callId)
  const isKnown = (answer: CallAnswer): boolean =>
    context?.calls.some(({ id }) => id === answer.callId || answer.callId.startsWith(`${id}/`)) ?? false
  const hasNew = answers.some(isNew)
  const selected = answers.filter((answer) => isNew(answer) || !hasNew || !isKnown(answer))
  for (const { callId, fingerprint, type } of selected)
    getAwaitedCall(context, callId, type === 'toolOutput' ? 'client' : 'approval', { fingerprint })
  return selected
}

export function applyAnswers(run: AnyRun, answers: readonly CallAnswer[]): void {
  for (const answer of answers) {
    const { callId, fingerprint } = answer
    const options = { fingerprint }
    if (answer.type === 'approve') run.approve(callId, answer.editedInput as never, options)
    else if (answer.type === 'reject') run.reject(callId, answer.why, options)
    else run.addToolOutput(callId, toOutputValue(answer), options)
  }
}
