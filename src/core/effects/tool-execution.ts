import type { StepProgress, ToolStepResponse } from '../../../machines/agent/announcements.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import type { BatchCall, ToolResult } from '../../../machines/agent/results.js'
import { callStepId } from './call-step-id.js'
import type { Work } from '../live/open-steps.js'

type ToolWork = Work<'tool_execution', ToolResult>

/** A call that a tool carries out. Where shields look at results, nothing that the tool returned is told here. */
export function toolExecution(
  context: AgentContext,
  { id: callId, name, arguments: text }: Pick<BatchCall, 'id' | 'name' | 'arguments'>,
): ToolWork {
  const toolCall = { id: callId, type: 'function' as const, function: { name, arguments: text } }
  return {
    step: toolStep(context, callId, name),
    ending: (result) => ({
      outcome: result?.status === 'ok' ? 'ok' : 'error',
      payload: { toolCall, toolResponse: result && responseOf(result, context.features.resultShields) },
    }),
  }
}

export function toolProgress(
  context: AgentContext,
  callId: string,
  name: string,
  progress: unknown,
): StepProgress {
  return { type: 'step_progress', ...toolStep(context, callId, name), progress }
}

function toolStep(context: AgentContext, callId: string, name: string): ToolWork['step'] {
  return { stepType: 'tool_execution', stepId: callStepId(context, callId), callId, name }
}

function responseOf({ status, content, truncated }: ToolResult, isWithheld: boolean): ToolStepResponse {
  return { status, content: isWithheld ? null : content, ...(truncated && { truncated }) }
}
