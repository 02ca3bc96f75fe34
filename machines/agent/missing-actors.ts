import { fromCallback, fromPromise, type NonReducibleUnknown } from 'xstate'
import type { UserGuardsOutput } from '../../guards/user-state.js'
import type { AgentMachineEvent } from './context.js'
import type { CompactionOutput } from './fit.js'
import { createModelFailure, type ModelOutput } from './model-response.js'
import type { RetrievedSnippet } from './messages.js'
import type { StepPlan } from './step-plan.js'
import type { CallScreening, InputScreening, OutputScreening } from './screening.js'

/** `agent.machine`, or `agentMachine.provide({ actors })`, implements these. A missing actor ends the run in ERROR. */
export const requestModel = createMissingActor<ModelOutput, { conclude: boolean }>('requestModel')
export const backOff = createMissingActor<void, { until: number }>('backOff')
export const screenInput = createMissingActor<InputScreening[]>('screenInput')
export const retrieve = createMissingActor<RetrievedSnippet[]>('retrieve')
export const fitContext = createMissingActor<CompactionOutput>('fitContext')
export const prepareStep = createMissingActor<StepPlan>('prepareStep')
export const screenCalls = createMissingActor<CallScreening[]>('screenCalls')
export const screenResults = createMissingActor<CallScreening[]>('screenResults')
export const consultGuards = createMissingActor<UserGuardsOutput, { on: 'calls' | 'results' }>(
  'consultGuards',
)
export const screenOutput = createMissingActor<OutputScreening>('screenOutput')

/** Sends TOOL_RESULT per call, then BATCH_DONE. A callback actor, so that late results are dropped after a stop. */
export const runTools = fromCallback<AgentMachineEvent>(({ sendBack }) => {
  sendBack({ type: 'BATCH_DONE' })
})

/** Sends DEADLINE at the time `at`. The actor is spawned so that it outlives substates. */
export const deadline = fromCallback<AgentMachineEvent, { at: number }>(() => undefined)

function createMissingActor<Output, Input = NonReducibleUnknown>(name: string) {
  const message = `The actor '${name}' is not provided. Use agent.machine, or agentMachine.provide({ actors: { ${name} } }).`
  return fromPromise<Output, Input>(() =>
    Promise.reject(createModelFailure({ kind: 'fatal', code: 'internal', message })),
  )
}
