import { toAction } from '../update-action.js'
import { spendUsage } from './spend-usage.js'

/** The log cannot be written any more: its records are safe, and later events would be lost. */
export const noteStoreFailure = toAction((_context, event) =>
  event.type === 'STORE_FAILED'
    ? { error: { code: event.failure.code, message: event.failure.message, recoverable: true } }
    : undefined,
)

/** Counts the request that the process drops. A call that has not begun runs in the process that resumes the run. */
export const noteRelease = toAction((context, event, emit) => {
  if (event.type !== 'LEFT') return undefined
  const { usage = null, unbegun = [] } = event
  const cost = spendUsage(context, usage, emit, { isCut: true })
  if (unbegun.length === 0) return cost
  const calls = context.calls.map((call) => {
    if (call.result !== undefined || !unbegun.includes(call.id)) return call
    const { started: _started, ...waiting } = call
    return waiting
  })
  return { ...cost, calls }
})
