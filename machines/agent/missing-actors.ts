import { fromCallback, fromPromise } from 'xstate'
import type { UserGuardsOutput } from '../../guards/user-state.js'
import type { AgentMachineEvent } from './machine-events.js'
import type { CompactionOutput } from './fit.js'
import { createModelFailure, type ModelOutput } from './model-response.js'
import type { RetrievedSnippet } from './messages.js'
import type { StepPlan } from './step-plan.js'
import type { CallScreening, InputScreening, OutputScreening } from './screening.js'

/** `agent.machine`, or `agentMachine.provide({ actors })`, implements these. A missing actor ends the run in ERROR. */
export const requestModel = fromPromise<ModelOutput, { conclude: boolean }>(
  createMissingActor('requestModel'),
)
export const backOff = fromPromise<void, { until: number }>(createMissingActor('backOff'))
export const screenInput = fromPromise<InputScreening[]>(createMissingActor('screenInput'))
export const retrieve = fromPromise<RetrievedSnippet[]>(createMissingActor('retrieve'))
export const fitContext = fromPromise<CompactionOutput>(createMissingActor('fitContext'))
export const prepareStep = fromPromise<StepPlan>(createMissingActor('prepareStep'))
export const screenCalls = fromPromise<CallScreening[]>(createMissingActor('screenCalls'))
export const screenResults = fromPromise<CallScreening[]>(createMissingActor('screenResults'))
export const consultGuards = fromPromise<UserGuardsOutput, { on: 'calls' | 'results' }>(
  createMissingActor('consultGuards'),
)
export const screenOutput = fromPromise<OutputScreening>(createMissingActor('screenOutput'))

/** Sends TOOL_RESULT per call, then BATCH_DONE. A callback actor, so that late results are dropped after a stop. */
export const runTools = fromCallback<AgentMachineEvent>(({ sendBack }) => {
  sendBack({ type: 'BATCH_DONE' })
})

/** Sends DEADLINE at the time `at`. The actor is spawned so that it outlives substates. */
export const deadline = fromCallback<AgentMachineEvent, { at: number }>(() => undefined)

function createMissingActor(name: string): () => Promise<never> {
  return () =>
    Promise.reject(
      createModelFailure({
        kind: 'fatal',
        code: 'internal',
        message: `The actor '${name}' is not provided. Use agent.machine, or agentMachine.provide({ actors: { ${name} } }).`,
      }),
    )
}
