import type { StepProgress, ToolStepResponse } from '../../../machines/agent/announcements.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import type { BatchCall, ToolResult } from '../../../machines/agent/batch-calls.js'
import { attachCause, hasThrown } from '../base/errors.js'
import { getCallStepId } from './call-step-id.js'
import type { StepWork } from '../live/open-steps.js'

type ToolWork = StepWork<'tool_execution', ToolResult>

/**
 * A call that a tool executes. Where shields screen results, the events leave out what the tool returned. Events are
 * built when they are emitted, because many runs may be parked in such calls.
 */
export class ToolStep implements ToolWork {
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
    return createToolStep(this.#context, this.#call.id, this.#call.name)
  }

  toEnding(result: ToolResult | null): ReturnType<ToolWork['toEnding']> {
    const { id, name, arguments: text } = this.#call
    const toolCall = { id, type: 'function' as const, function: { name, arguments: text } }
    const { resultShields } = this.#context.features
    const threw = result !== null && hasThrown(result)
    const message = resultShields ? 'The tool threw; shields look at what.' : (result?.content ?? '')
    return {
      outcome: result?.status === 'ok' ? 'ok' : 'error',
      ...(threw && { error: attachCause({ code: result.status, message }, result) }),
      payload: {
        toolCall,
        toolResponse: result && toStepResponse(result, resultShields),
      },
    }
  }
}

export function createToolProgress(
  context: AgentContext,
  callId: string,
  name: string,
  progress: unknown,
): StepProgress {
  return { type: 'step_progress', ...createToolStep(context, callId, name), progress }
}

function createToolStep(context: AgentContext, callId: string, name: string): ToolWork['step'] {
  return { stepType: 'tool_execution', stepId: getCallStepId(context, callId), callId, name }
}

function toStepResponse(
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
