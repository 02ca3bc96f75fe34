import type { AgentContext } from './context.js'
import { messageOf, openQuestions, questionId } from './delegation.js'
import type { PendingCall, RunInProgress, RunResult } from './outcome.js'
import { type BatchCall, fingerprintOf } from './results.js'
import { shownMessages } from './unscreened.js'

/** A run at rest, as its user sees it. */
export function resultOf(context: AgentContext): RunResult {
  return standingOf(context) as RunResult
}

/** A run at any time. That each state has what its type says is a rule of the machine. */
export function standingOf(context: AgentContext): RunResult | RunInProgress {
  const state = context.state ?? 'RUNNING'
  const resumable = state === 'PAUSED' || state === 'WAITING_FOR_INPUT'
  const outputProblem = resumable ? null : outputProblemOf(context)
  return {
    state,
    reason: context.reason ?? 'internal',
    output: context.output,
    messages: shownMessages(context),
    usage: context.usage.run,
    steps: context.steps,
    ...(context.error !== null && { error: context.error }),
    ...(outputProblem !== null && { outputProblem }),
    ...(state === 'WAITING_FOR_INPUT' && { pending: pendingCalls(context) }),
    resumable,
    sessionId: context.sessionId,
    runId: context.runId,
  } as unknown as RunResult | RunInProgress
}

/** What the run rests for. */
export function pendingCalls(context: AgentContext): PendingCall[] {
  return context.state === 'WAITING_FOR_INPUT' ? openQuestionsOf(context) : []
}

/** Every call that somebody can answer: at a rest, and while others run. */
export function answerableCalls(context: AgentContext): PendingCall[] {
  return takesAnswers(context) ? openQuestionsOf(context) : []
}

/** The one of them that an answer names; a batch may have thousands. */
export function answerableCall(
  context: AgentContext,
  callId: string,
  needs: PendingCall['needs'],
): PendingCall | undefined {
  if (!takesAnswers(context)) return undefined
  for (const call of context.calls) {
    if (callId !== call.id && !callId.startsWith(`${call.id}/`)) continue
    const asked = questionsAt(context, call).find((one) => one.callId === callId && one.needs === needs)
    if (asked) return asked
  }
  return undefined
}

function takesAnswers({ state }: AgentContext): boolean {
  return state === 'WAITING_FOR_INPUT' || state === 'WAITING_FOR_TOOL'
}

function openQuestionsOf(context: AgentContext): PendingCall[] {
  return context.calls.flatMap((call) => questionsAt(context, call))
}

function questionsAt(context: AgentContext, call: BatchCall): PendingCall[] {
  const { id: callId, name, arguments: text, needs, interrupted, hosted } = call
  if (call.result !== undefined || needs === 'nobody' || call.unchecked) return []
  if (needs === 'child') return openQuestions(call).map((question) => asAsked(context, call, question))
  const fingerprint = fingerprintOf(call)
  const marks = { ...(interrupted && { interrupted }), ...(hosted && { hosted }) }
  return [{ callId, name, arguments: text, needs, fingerprint, messageId: messageOf(context), ...marks }]
}

/** A question of a sub-agent, as it is asked here. */
function asAsked(context: AgentContext, call: BatchCall, question: PendingCall): PendingCall {
  return {
    ...question,
    callId: questionId(call, question),
    messageId: messageOf(context, question),
    path: [call.name, ...(question.path ?? [])],
  }
}

/**
 * Why the output of a run that has ended is no object, though its agent has an output schema; null when it is one, and
 * for an agent without a schema.
 */
export function outputProblemOf(context: AgentContext): string | null {
  const { features, response, reason, held, outputProblem } = context
  if (!features.structuredOutput) return null
  // What a shield has blocked, or has not cleared, is not spoken of.
  if (reason === 'shield' || held !== null) return unanswered
  return outputProblem ?? (response === 'answer' ? null : unanswered)
}

const unanswered =
  'The run ended without an answer that could be held against the output schema; the output is the raw text.'
