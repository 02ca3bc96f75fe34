import { act } from '../act.js'
import { timeOf } from '../events.js'
import { closeOpenCalls, settleCall, whyNotExecuted, withResults } from './transcript.js'

export const markStarted = act((context) => ({
  calls: context.calls.map((call) =>
    call.result === undefined && call.needs === 'nobody' ? { ...call, started: true as const } : call,
  ),
}))

export const recordResult = act((context, event, tell) =>
  event.type === 'TOOL_RESULT'
    ? { calls: settleCall(context.calls, event.callId, event.result, timeOf(event), tell) }
    : undefined,
)

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
 * that nobody will carry out any more are closed; those that a waiting state exposes stay open.
 */
export const settleBatch = act((context, event, tell) => {
  if (context.calls.length === 0) return undefined
  const exposed = context.reason === 'approval' || context.reason === 'tool_output'
  const calls = exposed
    ? context.calls
    : closeOpenCalls(context, whyNotExecuted(context.reason), timeOf(event), tell)
  return { calls: exposed ? calls : [], messages: withResults(context, calls) }
})

export const askForApproval = act((context, _event, tell) => {
  for (const call of context.calls) {
    if (call.result === undefined && call.needs === 'approval') {
      tell({ type: 'approval_requested', callId: call.id, name: call.name, arguments: call.arguments })
    }
  }
  return undefined
})

export const approve = act((context, event) => {
  if (event.type !== 'APPROVE') return undefined
  const edit = event.arguments === undefined ? {} : { arguments: event.arguments, edited: true as const }
  return {
    calls: context.calls.map((call) =>
      call.id === event.callId && call.needs === 'approval' && call.result === undefined
        ? { ...call, ...edit, needs: 'nobody' as const }
        : call,
    ),
  }
})

export const reject = act((context, event, tell) => {
  if (event.type !== 'REJECT') return undefined
  const content = event.why === '' ? 'Rejected by the user.' : `Rejected by the user: ${event.why}`
  const result = { status: 'rejected' as const, content, durationMs: 0 }
  return { calls: settleCall(context.calls, event.callId, result, timeOf(event), tell) }
})

export const acceptOutput = act((context, event, tell) => {
  if (event.type !== 'TOOL_OUTPUT') return undefined
  const { callId, isError } = event
  const content = typeof event.content === 'string' ? event.content : ''
  const result = isError
    ? { status: 'error' as const, errorKind: 'failed' as const, content, durationMs: 0 }
    : { status: 'ok' as const, content, durationMs: 0 }
  return { calls: settleCall(context.calls, callId, result, timeOf(event), tell) }
})
