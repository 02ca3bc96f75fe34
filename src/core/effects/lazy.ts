import { fromCallback } from 'xstate'
import type { UserGuardsOutput } from '../../../machines/agent/consultation.js'
import type { AgentMachineEvent } from '../../../machines/agent/events.js'
import type { CompactionOutput } from '../../../machines/agent/fit.js'
import type { ModelOutput } from '../../../machines/agent/response.js'
import { stepIdOf } from '../../../machines/agent/step-id.js'
import type { TokenCounter } from '../context/count-tokens.js'
import { CallAbort } from '../base/abort.js'
import { lazily } from '../base/load.js'
import { fromEffect } from '../live/effect.js'
import { type EffectScope, agentOf } from '../live/live.js'
import type { AgentParts } from '../live/parts.js'
import { describeError } from '../base/describe-error.js'
import type * as Work from './work.js'

/**
 * The actors that a run works with. An agent has to be there at once, what its runs do has not: their code is loaded
 * when the first of them starts, so that a page, or a program that only looks up a session, begins without it.
 */

let code: typeof Work | undefined
const load = lazily(async () => (code = await import('./work.js')))
/** At once, where it is there. */
const work = (): typeof Work | Promise<typeof Work> => code ?? load()
const screening = lazily(() => import('./screening.js'))
const fitting = lazily(() => import('./fitting.js'))

/** An effect whose code is loaded when it is first needed. */
function loaded<Output>(work: (scope: EffectScope) => Promise<Output>) {
  return fromEffect<Output>(({ abort, self }) => {
    const { live, context } = agentOf(self)
    return work({ signal: abort.signal, self, live, context })
  })
}

/**
 * One attempt at one response. Deltas are emitted as they come; what the machine learns is the whole answer, or a
 * failure as plain data.
 */
export const requestModel = (parts: AgentParts) =>
  fromEffect<ModelOutput, { conclude: boolean }>(async ({ input: { conclude }, abort, self }) => {
    const { live, context } = agentOf(self)
    const stream = live.openStream(stepIdOf(context), context.attempt)
    const code = await work()
    return code.requestModel(parts, { conclude, abort, self, live, context, stream })
  })

/**
 * Carries out the started calls of the batch. A callback actor, because what it sends after a stop is dropped; it has
 * nothing of its own that ends it early.
 */
export const runTools = (parts: AgentParts) =>
  fromCallback<AgentMachineEvent>(({ sendBack, self }) => {
    const { live, context, parent: agent } = agentOf(self)
    const scope = { live, context, agent, self, abort: new CallAbort(), sendBack }
    if (code) return code.runTools(parts, scope)
    let stop = (): void => scope.abort.abort()
    const begin = async (): Promise<void> => {
      try {
        const { runTools } = await load()
        if (!scope.abort.aborted) stop = runTools(parts, scope)
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

/** Shows the shields what the user has said. */
export const screenInput = (parts: AgentParts) =>
  loaded(async (scope) => (await screening()).screenInput(parts, scope))

/** Shows the shields the arguments of the calls at hand. */
export const screenCalls = (parts: AgentParts) =>
  loaded(async (scope) => (await screening()).screenCalls(parts, scope))

/** Shows the shields the results that have come. */
export const screenResults = (parts: AgentParts) =>
  loaded(async (scope) => (await screening()).screenResults(parts, scope))

/** Shows the shields an answer as a whole. */
export const screenOutput = (parts: AgentParts) =>
  loaded(async (scope) => (await screening()).screenOutput(parts, scope))

/** Asks memory about what the user said. */
export const retrieve = (parts: AgentParts) => loaded(async (scope) => (await work()).retrieve(parts, scope))

/** Asks the user's own guards about the batch at hand. */
export const consultGuards = (parts: AgentParts) =>
  fromEffect<UserGuardsOutput, { on: 'calls' | 'results' }>(async ({ input: { on }, abort, self }) => {
    const { live, context } = agentOf(self)
    const code = await work()
    return code.consultGuards(parts, { on, signal: abort.signal, live, context })
  })

/**
 * Makes the next request fit `context.window`. A fit stays as it is until the request outgrows the window again. Rejects
 * with a plain failure: `context_overflow` when no fit is small enough, `missing_package` without a tokenizer.
 */
export const fitContext = (parts: AgentParts) => {
  let counter: Promise<TokenCounter> | undefined
  return fromEffect<CompactionOutput>(async ({ abort, self }) => {
    const { live, context } = agentOf(self)
    const { counterOf, fitted, plainly } = await fitting()
    try {
      counter ??= counterOf(parts)
      return await fitted({ parts, live, context, abort, self }, await counter)
    } catch (error) {
      throw plainly(error)
    }
  })
}
