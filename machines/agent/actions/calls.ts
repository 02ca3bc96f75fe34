import { extended } from '../../../guards/lib/extended.js'
import { act } from '../act.js'
import { timeOf } from '../events.js'
import { isPaused, withAnswer } from '../delegation.js'
import { isInDoubt, toolsIn } from '../in-doubt.js'
import { questionsOf } from '../questions.js'
import { isRunnable } from '../results.js'
import { rejectedBecause } from '../screening.js'
import { spendForChild } from './children.js'
import {
  awaitShields,
  closeOpenCalls,
  receiveResult,
  settleCall,
  whyNotExecuted,
  withholdUnscreened,
  withResults,
} from './transcript.js'
import { tellUntold } from './untold.js'

export const markStarted = act((context) => ({
  calls: context.calls.map((call) => (isRunnable(call) ? extended(call, { started: true as const }) : call)),
}))

export const recordResult = act((context, event, tell) => {
  if (event.type !== 'TOOL_RESULT') return undefined
  const spent = spendForChild(context, event, tell)
  const calls = receiveResult({ ...context, ...spent }, event.callId, event.result, timeOf(event), tell)
  return { ...spent, calls }
})

/**
 * A run that is resumed in the middle of a batch: a call that was running may have had its effect. Unless its tool may
 * run twice, it does not run again by itself.
 */
export const closeInterruptedCalls = act((context, event, tell) => {
  const inDoubt = context.calls.filter((call) => isInDoubt(context, call, toolsIn(event)))
  if (inDoubt.length === 0) return undefined
  if (context.config.toolCalls.onInterrupted === 'result') {
    const closed = closeOpenCalls({ ...context, calls: inDoubt }, '', timeOf(event), tell)
    return { calls: context.calls.map((call) => closed.find(({ id }) => id === call.id) ?? call) }
  }
  return {
    calls: context.calls.map((call) => {
      if (!inDoubt.includes(call)) return call
      const { started: _started, ...waiting } = call
      return { ...waiting, needs: 'approval' as const, interrupted: true as const }
    }),
  }
})

/** The program that goes on may have other tools than the one that began. */
export const noteTools = act((_context, event) => {
  const tools = toolsIn(event)
  return tools && { tools }
})

/** The batch has ended: a call that was started and never reported has an unknown outcome. */
export const closeStartedCalls = act((context, event, tell) => {
  const started = context.calls.filter((call) => call.started)
  if (started.every((call) => call.result !== undefined)) return undefined
  const closed = closeOpenCalls(
    { ...context, calls: started },
    'Not executed: the tool runner stopped.',
    timeOf(event),
    tell,
  )
  return { calls: context.calls.map((call) => closed.find(({ id }) => id === call.id) ?? call) }
})

/**
 * Makes the transcript valid: every call of the last batch has its one result right after it, in call order. Calls
 * that nobody will carry out any more are closed; those that a waiting state exposes stay open, and so do those of
 * sub-agents that are paused together with the run.
 */
export const settleBatch = act((context, event, tell) => {
  if (context.calls.length === 0) return undefined
  const exposed =
    context.reason === 'approval' ||
    context.reason === 'tool_output' ||
    (context.reason === 'paused' && context.calls.some(isPaused))
  const closed = exposed
    ? context.calls
    : withholdUnscreened(
        closeOpenCalls(context, whyNotExecuted(context.reason), timeOf(event), tell),
        timeOf(event),
        tell,
      )
  const { calls, untold } = tellUntold({ ...context, calls: closed }, tell)
  return { untold, calls: exposed ? calls : [], messages: withResults(context, closed) }
})

export const askForApproval = act((context, _event, tell) => {
  for (const question of questionsOf(context)) tell(question)
  return undefined
})

export const approve = act((context, event, tell) => {
  if (event.type !== 'APPROVE') return undefined
  const { arguments: edited } = event
  const answer = { type: 'approve' as const, ...(edited !== undefined && { arguments: edited }) }
  const answered = withAnswer(context.calls, event.callId, answer)
  if (answered) return { calls: answered }
  const asked = edited !== undefined ? context.calls.find(({ id }) => id === event.callId) : undefined
  if (asked?.hosted && edited !== asked.arguments) {
    const result = { status: 'rejected' as const, content: otherwise, durationMs: 0 }
    return { calls: settleCall(context.calls, event.callId, result, timeOf(event), tell) }
  }
  // Who logs what no shield has cleared marks it so; logs of old, in which edits were not looked at, have no such mark.
  const unchecked = context.features.callShields && event.withheld ? { unchecked: true as const } : {}
  const edit =
    event.arguments === undefined ? {} : { arguments: event.arguments, edited: true as const, ...unchecked }
  return {
    calls: context.calls.map((call) =>
      call.id === event.callId && call.needs === 'approval' && call.result === undefined
        ? { ...call, ...edit, needs: 'nobody' as const, approved: true as const }
        : call,
    ),
  }
})

/** A provider carries out what it has asked for, and nothing else. */
const otherwise = 'Rejected by the user, who wants it with other arguments.'

export const reject = act((context, event, tell) => {
  if (event.type !== 'REJECT') return undefined
  const answered = withAnswer(context.calls, event.callId, { type: 'reject', why: event.why })
  if (answered) return { calls: answered }
  const content = event.why === '' ? 'Rejected by the user.' : `${rejectedBecause}${event.why}`
  const result = { status: 'rejected' as const, content, durationMs: 0 }
  // A reason is what a person says and the model reads; where a log of old has none marked, no shield has looked at it.
  const calls = event.withheld
    ? awaitShields(context.calls, event.callId, result, timeOf(event))
    : settleCall(context.calls, event.callId, result, timeOf(event), tell)
  return { calls }
})

export const acceptOutput = act((context, event, tell) => {
  if (event.type !== 'TOOL_OUTPUT') return undefined
  const { callId, isError } = event
  const content = typeof event.content === 'string' ? event.content : ''
  const media = event.media ? { media: event.media } : {}
  const answer = { type: 'output' as const, content, ...media, ...(isError && { isError }) }
  const answered = withAnswer(context.calls, callId, answer)
  if (answered) return { calls: answered }
  const result = isError
    ? { status: 'error' as const, errorKind: 'failed' as const, content, durationMs: 0 }
    : { status: 'ok' as const, content, durationMs: 0, ...media }
  return { calls: receiveResult(context, callId, result, timeOf(event), tell) }
})
