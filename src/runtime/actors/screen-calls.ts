import { fromPromise } from 'xstate'
import type { CallScreening } from '../../../machines/agent/screening.js'
import { agentOf } from '../live.js'
import type { Parts } from '../parts.js'
import { shieldCall } from '../shield-call.js'
import { screen } from '../shielding.js'
import { callStepId } from '../call-step-id.js'

/** Shows the shields the arguments of the calls at hand. */
export const screenCalls = (parts: Parts) =>
  fromPromise<CallScreening[]>(async ({ signal, self }) => {
    const { live, context } = agentOf(self)
    await live.flushed()
    signal.throwIfAborted()
    const open = context.calls.filter((call) => call.result === undefined)
    for (const { id: callId } of open) {
      const stepId = `${callStepId(context, callId)}.toolInput`
      live.steps.start(self, callShield({ stepId, point: 'toolInput', callId }))
    }
    signal.throwIfAborted()
    return Promise.all(
      open.map(async ({ id: callId, name: toolName, arguments: text }) => ({
        ...(await screen(parts, { live, context, signal }, 'toolInput', text, { callId, toolName })),
        callId,
      })),
    )
  })

/** Shows the shields the results that have come. */
export const screenResults = (parts: Parts) =>
  fromPromise<CallScreening[]>(async ({ signal, self }) => {
    const { live, context } = agentOf(self)
    await live.flushed()
    signal.throwIfAborted()
    const come = context.calls.filter((call) => call.unscreened)
    for (const { id: callId } of come) {
      const stepId = `${callStepId(context, callId)}.toolOutput`
      live.steps.start(self, callShield({ stepId, point: 'toolOutput', callId }))
    }
    signal.throwIfAborted()
    return Promise.all(
      come.map(async ({ id: callId, name: toolName, result }) => ({
        ...(await screen(parts, { live, context, signal }, 'toolOutput', result?.content ?? '', {
          callId,
          toolName,
        })),
        callId,
      })),
    )
  })

const callShield = (step: { stepId: string; point: 'toolInput' | 'toolOutput'; callId: string }) =>
  shieldCall(step, (screenings: CallScreening[]) => screenings.filter(({ callId }) => callId === step.callId))
