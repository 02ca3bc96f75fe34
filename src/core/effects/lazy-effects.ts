import { fromCallback } from 'xstate'
import type { UserGuardsOutput } from '../../../guards/user-state.js'
import type { AgentMachineEvent } from '../../../machines/agent/machine-events.js'
import type { CompactionOutput } from '../../../machines/agent/fit.js'
import type { ModelOutput } from '../../../machines/agent/model-response.js'
import type { StepPlan } from '../../../machines/agent/step-plan.js'
import { getStepId } from '../../../machines/agent/messages.js'
import type { TokenCounter } from '../context/token-counter.js'
import { CallAbort } from '../base/abort.js'
import { loadOnce } from '../base/platform.js'
import { toLightLogic } from '../interpreter/light-actor.js'
import { fromEffect } from '../live/from-effect.js'
import { type EffectScope, getAgent } from '../live/runtime.js'
import { type AgentParts, toSpeaker } from '../live/agent-parts.js'
import { describeError } from '../base/errors.js'
import type * as Work from './run-effects.js'

/**
 * The actors that a run works with. An agent has to be there at once, what its runs do has not: their code is loaded
 * when the first of them starts, so that a page, or a program that only looks up a session, begins without it.
 */

let code: typeof Work | undefined
const loadRunEffects = loadOnce(async () => (code = await import('./run-effects.js')))
/** At once, where it is there. */
const loadWork = (): typeof Work | Promise<typeof Work> => code ?? loadRunEffects()
const loadScreening = loadOnce(() => import('./screening-effects.js'))
const loadPlanning = loadOnce(() => import('./prepare-step.js'))
const loadFitting = loadOnce(() => import('./fit-transcript.js'))

/** An effect whose code is loaded when it is first needed. */
function createLazyEffect<Output>(work: (scope: EffectScope) => Promise<Output>) {
  return fromEffect<Output>(({ abort, self }) => {
    const { runtime, context } = getAgent(self)
    return work({ signal: abort.signal, self, runtime, context })
  })
}

/**
 * One attempt at one response. Deltas are emitted as they come; what the machine learns is the whole answer, or a
 * failure as plain data.
 */
export const requestModel = (parts: AgentParts) =>
  fromEffect<ModelOutput, { conclude: boolean }>(async ({ input: { conclude }, abort, self }) => {
    const { runtime, context } = getAgent(self)
    const stream = runtime.openStream(getStepId(context), context.attempt)
    const code = await loadWork()
    const speaking = toSpeaker(parts, context.speaker)
    return code.requestModel(speaking, { conclude, abort, self, runtime, context, stream })
  })

/**
 * Carries out the started calls of the batch. A callback actor, because what it sends after a stop is dropped; it has
 * nothing of its own that ends it early.
 */
export const runTools = (parts: AgentParts) => toLightLogic(createBatchLogic(parts))

const createBatchLogic = (parts: AgentParts) =>
  fromCallback<AgentMachineEvent>(({ sendBack, self }) => {
    const { runtime, context, parent: agent } = getAgent(self)
    const scope = { runtime, context, agent, self, abort: new CallAbort(), sendBack }
    if (code) return code.runTools(toSpeaker(parts, context.speaker), scope)
    let stop = (): void => scope.abort.abort()
    const begin = async (): Promise<void> => {
      try {
        const { runTools } = await loadRunEffects()
        if (!scope.abort.aborted) stop = runTools(toSpeaker(parts, context.speaker), scope)
      } catch (error) {
        // Only code that could not be loaded: a batch fails in its results.
        const content = describeError(error)
        const result = { status: 'error', errorKind: 'transient', content, durationMs: 0 } as const
        for (const { id } of context.calls) sendBack({ type: 'TOOL_RESULT', callId: id, result })
        sendBack({ type: 'BATCH_DONE' })
      }
    }
    void begin()
    return () => stop()
  })

/** Asks the agent's author what the next request is made of. */
export const prepareStep = (parts: AgentParts) =>
  createLazyEffect<StepPlan>(async (scope) =>
    (await loadPlanning()).prepareStep(toSpeaker(parts, scope.context.speaker), scope),
  )

/** Screens the user messages. */
export const screenInput = (parts: AgentParts) =>
  createLazyEffect(async (scope) => (await loadScreening()).screenInput(parts, scope))

/** Screens the arguments of the current calls. */
export const screenCalls = (parts: AgentParts) =>
  createLazyEffect(async (scope) =>
    (await loadScreening()).screenCalls(toSpeaker(parts, scope.context.speaker), scope),
  )

/** Screens the results that have come. */
export const screenResults = (parts: AgentParts) =>
  createLazyEffect(async (scope) => (await loadScreening()).screenResults(parts, scope))

/** Screens a whole answer. */
export const screenOutput = (parts: AgentParts) =>
  createLazyEffect(async (scope) => (await loadScreening()).screenOutput(parts, scope))

/** Searches memory for the last user message. */
export const retrieve = (parts: AgentParts) =>
  createLazyEffect(async (scope) => (await loadWork()).retrieveSnippets(parts, scope))

/** Asks the user's own guards about the current batch. */
export const consultGuards = (parts: AgentParts) =>
  fromEffect<UserGuardsOutput, { on: 'calls' | 'results' }>(async ({ input: { on }, abort, self }) => {
    const { runtime, context } = getAgent(self)
    const code = await loadWork()
    return code.consultGuards(parts, { on, signal: abort.signal, runtime, context })
  })

/**
 * Makes the next request fit `context.window`. A fit stays as it is until the request outgrows the window again. Rejects
 * with a plain failure: `context_overflow` when no fit is small enough, `missing_package` without a tokenizer.
 */
export const fitContext = (parts: AgentParts) => {
  const counters = new WeakMap<AgentParts, Promise<TokenCounter>>()
  return fromEffect<CompactionOutput>(async ({ abort, self }) => {
    const { runtime, context } = getAgent(self)
    const { loadCounter, fitTranscript, toActorError } = await loadFitting()
    const speaking = toSpeaker(parts, context.speaker)
    try {
      const counter = counters.get(speaking) ?? loadCounter(speaking)
      counters.set(speaking, counter)
      return await fitTranscript({ parts: speaking, runtime, context, abort, self }, await counter)
    } catch (error) {
      throw toActorError(error)
    }
  })
}
