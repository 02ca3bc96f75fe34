import type { AgentContext } from './context.js'
import type { PendingCall } from './results.js'

/** A call that was running when the process died, and may have had an effect that must not come twice. */
export function isInDoubt(context: AgentContext, call: PendingCall): boolean {
  return isUnderWay(call) && !mayRunTwice(context, call.name)
}

export function isUnderWay({ started, result }: PendingCall): boolean {
  return started === true && result === undefined
}

function mayRunTwice({ tools }: AgentContext, name: string): boolean {
  // What does not exist has no effect.
  if (!Object.hasOwn(tools, name)) return true
  const traits = tools[name]
  return traits?.readOnly === true || traits?.idempotent === true || traits?.delegate === true
}
