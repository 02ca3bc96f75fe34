import { extended } from '../../../guards/lib/extended.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import type { ModelOutput } from '../../../machines/agent/response.js'
import { stepIdOf } from '../../../machines/agent/step-id.js'
import type { Summary } from './request-summary.js'
import type { Work } from '../live/open-steps.js'

/** One attempt at an answer. Where shields look at answers, or at calls, nothing of these is told here. */
export function inference(context: AgentContext): Work<'inference', ModelOutput> {
  const { attempt, features } = context
  return {
    step: { stepType: 'inference', stepId: stepIdOf(context), attempt },
    ending: (output) => {
      if (output === null) return { payload: { modelResponse: null } }
      const { text, refusal, toolCalls, finishReason, model, usage } = output.response
      const words = features.outputShields
        ? { text: null }
        : { text, ...(refusal !== null && refusal !== '' && { refusal }) }
      const isHeld = features.outputShields && (text !== '' || !!refusal)
      const calls = toolCalls.length > 0 && (features.callShields || isHeld) ? null : toolCalls
      const modelResponse = extended(words, { toolCalls: calls, finishReason, model, usage })
      return { payload: { modelResponse } }
    },
  }
}

/** A request for a summary; `written` is asked for what came of it. */
export function summaryInference(
  context: AgentContext,
  written: () => Summary | null,
): Work<'inference', unknown> {
  return {
    step: { stepType: 'inference', stepId: `${stepIdOf(context)}.summary`, attempt: 1, summary: true },
    ending: (output) => {
      const summary = output === null ? null : written()
      if (summary === null) return { payload: { modelResponse: null } }
      const { text, problem, usage } = summary
      if (text === null) {
        const error = { code: 'no_summary', message: problem }
        return { outcome: 'error', error, payload: { modelResponse: null } }
      }
      const shown = context.features.outputShields ? null : text
      const modelResponse = { text: shown, toolCalls: [], finishReason: null, model: null, usage }
      return { payload: { modelResponse } }
    },
  }
}
