import type { AgentContext } from '../../../machines/agent/context.js'
import { getStepId } from '../../../machines/agent/step-id.js'

/** The step of a call of the batch at hand: its id begins with that of the response that asked for it. */
export function getCallStepId({ runId, steps, batchNumber }: AgentContext, callId: string): string {
  return `${getStepId({ runId, steps: steps - 1, numbered: batchNumber - 1 })}.tool.${callId}`
}
