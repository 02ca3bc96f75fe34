import { toAction } from '../update-action.js'
import { getStepId } from '../step-id.js'
import type { StepSetting } from '../step-plan.js'

/** Keeps what was decided about the next step, for each attempt at it, and tells what differs from the agent as it is. */
export const notePlan = toAction((context, event, emit) => {
  if (event.type !== 'xstate.done.actor.plan') return undefined
  const { step: _step, ...decided } = event.output
  const changes = Object.keys(decided) as StepSetting[]
  const { model, tools } = decided
  if (changes.length > 0)
    emit({
      type: 'step_prepared',
      stepId: getStepId(context),
      changes,
      ...(model !== undefined && { model }),
      ...(tools && { tools }),
    })
  return { plan: event.output }
})
