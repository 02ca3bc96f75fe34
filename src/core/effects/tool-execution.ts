import type { StepProgress, ToolStepResponse } from '../../../machines/agent/announcements.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import type { BatchCall, ToolResult } from '../../../machines/agent/results.js'
import { failureWithCause, wasThrown } from '../base/thrown.js'
import { callStepId } from './call-step-id.js'
import type { Work } from '../live/open-steps.js'

type ToolWork = Work<'tool_execution', ToolResult>

/**
 * A call that a tool carries out. Where shields look at results, nothing that the tool returned is told here. What is
 * told is made when it is: runs are parked in such calls.
 */
export class ToolExecution implements ToolWork {
  readonly #context: AgentContext
  readonly #call: Pick<BatchCall, 'id' | 'name' | 'arguments'>

  constructor(context: AgentContext, call: Pick<BatchCall, 'id' | 'name' | 'arguments'>) {
    this.#context = context
    this.#call = call
  }

  get callId(): string {
    return this.#call.id
  }

  get step(): ToolWork['step'] {
    return toolStep(this.#context, this.#call.id, this.#call.name)
  }

  ending(result: ToolResult | null): ReturnType<ToolWork['ending']> {
    const { id, name, arguments: text } = this.#call
    const toolCall = { id, type: 'function' as const, function: { name, arguments: text } }
    const { resultShields } = this.#context.features
    const threw = result !== null && wasThrown(result)
    const message = resultShields ? 'The tool threw; shields look at what.' : (result?.content ?? '')
    return {
      outcome: result?.status === 'ok' ? 'ok' : 'error',
      ...(threw && { error: failureWithCause({ code: result.status, message }, result) }),
      payload: {
        toolCall,
        toolResponse: result && responseOf(result, resultShields),
      },
    }
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

function responseOf(
  { status, errorKind, content, truncated }: ToolResult,
  isWithheld: boolean,
): ToolStepResponse {
  return {
    status,
    ...(errorKind && { errorKind }),
    content: isWithheld ? null : content,
    ...(truncated && { truncated }),
  }
}
