import { extendObject } from '../../../guards/lib/extended.js'
import type { ModelStepResponse } from '../../../machines/agent/announcements.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import type { ModelOutput } from '../../../machines/agent/model-response.js'
import { getStepId } from '../../../machines/agent/step-id.js'
import type { Summary } from './request-summary.js'
import type { StepWork } from '../live/open-steps.js'

/** One attempt at an answer. Where shields screen answers or calls, uncleared content is left out. */
export function createInferenceStep(context: AgentContext): StepWork<'inference', ModelOutput> {
  const { attempt, features } = context
  const stepId = getStepId(context)
  return {
    step: { stepType: 'inference', stepId, attempt },
    isUncleared: ({ held }) => held?.stepId === stepId,
    toEnding: (output, now) => {
      if (output === null) return { payload: { modelResponse: null } }
      const { response } = output
      const words = features.outputShields ? getClearedWords(response, now) : getWords(response)
      const isWithheld = words.text === null || features.callShields
      const calls = response.toolCalls.length > 0 && isWithheld ? null : response.toolCalls
      const { finishReason, model, usage } = response
      const modelResponse = extendObject(words, { toolCalls: calls, finishReason, model, usage })
      return { payload: { modelResponse } }
    },
  }
}

type AnswerWords = Pick<ModelStepResponse, 'text' | 'refusal'>

function getWords({ text, refusal }: ModelOutput['response']): AnswerWords {
  return { text, ...(refusal !== null && refusal !== '' && { refusal }) }
}

/** The text of an answer as output shields cleared it into the transcript. */
function getClearedWords(
  response: ModelOutput['response'],
  { held, messages, batchAt }: AgentContext,
): AnswerWords {
  const { text, refusal } = getWords(response)
  if (text === '' && refusal === undefined) return { text }
  const said = messages[batchAt]
  // A message in place of an uncleared answer has `data` that says so.
  if (held !== null || said?.role !== 'assistant' || said.data !== undefined) return { text: null }
  return getWords({ ...response, text: said.content ?? '', refusal: said.refusal ?? null })
}

/** A request for a summary; `written` is asked for what came of it. */
export function createSummaryStep(
  context: AgentContext,
  written: () => Summary | null,
): StepWork<'inference', unknown> {
  return {
    step: { stepType: 'inference', stepId: `${getStepId(context)}.summary`, attempt: 1, summary: true },
    toEnding: (output) => {
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
