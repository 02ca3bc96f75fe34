import { resetGuard } from '../../../guards/state.js'
import { act } from '../act.js'
import { timeOf } from '../events.js'
import { closeOpenCalls } from './transcript.js'

/** A guard stops the run: the calls that it did not let through are closed, and the user is told why. */
export const announceHalt = act((context, event, tell) => {
  const { verdict } = context
  if (verdict === null) return undefined
  const { guard, evidence, message } = verdict
  tell({ type: 'guardrail', guard, action: 'halt', evidence, message })
  return {
    reason: guard,
    error: { code: guard, message, recoverable: verdict.onHalt === 'pause' },
    calls: closeOpenCalls(
      context,
      `Not executed: a guardrail stopped the run (${guard}).`,
      timeOf(event),
      tell,
    ),
  }
})

/** Resuming after a halt resets that guard alone. */
export const forgetHalt = act((context) => ({
  verdict: null,
  error: null,
  pausing: false,
  ...(context.verdict && {
    guardrails: resetGuard(context.guardrails, context.verdict.guard, context.verdict.userGuard),
  }),
}))
