import { toAction } from '../update-action.js'
import { spendUsage } from './spend-usage.js'

/** The log takes no more: what is in it is safe, what comes now would be forgotten. */
export const noteStoreFailure = toAction((_context, event) =>
  event.type === 'STORE_FAILED'
    ? { error: { code: event.failure.code, message: event.failure.message, recoverable: true } }
    : undefined,
)

/** What the process drops is paid for. A call that it has not begun runs when another process goes on. */
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
