import type { AgentConfig } from '../../../machines/agent/config.js'

/** Whether a guard looks at what calls do: then their arguments and results are part of the state. */
export function watchesCalls({ guardrails }: AgentConfig): boolean {
  const { repeatedCall, repeatedOutput, cycle, failing, terminalDelegation } = guardrails
  return [repeatedCall, repeatedOutput, cycle, failing, terminalDelegation].some((guard) => guard !== null)
}
