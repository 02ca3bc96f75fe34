import { fromCallback, fromPromise } from 'xstate'
import type { UserGuardsOutput } from '../../guards/user-state.js'
import type { AgentMachineEvent } from './machine-events.js'
import type { CompactionOutput } from './fit.js'
import { createModelFailure, type ModelOutput } from './model-response.js'
import type { RetrievedSnippet } from './messages.js'
import type { StepPlan } from './step-plan.js'
import type { CallScreening, InputScreening, OutputScreening } from './screening.js'

/**
 * The actors of the chart, by name. The bare machine has no implementations: `agent.machine` provides them, or
 * `agentMachine.provide({ actors })`. An actor that is missing ends the run in ERROR instead of hanging it.
 */
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

/**
 * Sends TOOL_RESULT a call and BATCH_DONE at the end. A callback, because its late results are dropped after a stop.
 */
export const runTools = fromCallback<AgentMachineEvent>(({ sendBack }) => {
  sendBack({ type: 'BATCH_DONE' })
})

/** Sends DEADLINE at the absolute time `at`. Spawned, so that it outlives the substates. */
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
