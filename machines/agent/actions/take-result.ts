import { toAction } from '../update-action.js'
import { findAnsweringCall } from '../answering-call.js'
import { getStepId } from '../step-id.js'

/**
 * The result of a tool becomes the answer of the run. Nothing is added to the transcript, which has the result already.
 * Output shields screen it like any answer.
 */
export const takeResult = toAction((context, event) => {
  const { runId, steps, batchNumber, features } = context
  const text = findAnsweringCall(context)?.result?.content ?? context.output
  const outputProblem =
    event.type === 'xstate.done.actor.resultGuards' ? (event.output.outputProblem ?? null) : null
  if (!features.outputShields) return { response: 'answer', output: text, outputProblem }
  const stepId = `${getStepId({ runId, steps: steps - 1, numbered: batchNumber - 1 })}.result`
  const held = { stepId, text, isRefusal: false, isPiece: false, reasoning: {}, outputProblem }
  return { response: 'answer', held }
})
