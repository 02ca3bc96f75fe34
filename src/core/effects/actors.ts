import { loadOnce } from '../base/platform.js'
import {
  type AnyActorRef,
  fromCallback,
  fromPromise,
  type NonReducibleUnknown,
  type PromiseActorLogic,
} from 'xstate'
import type { CompactionOutput } from '../../../machines/agent/fit.js'
import type { AgentMachineEvent } from '../../../machines/agent/context.js'
import type { ModelOutput } from '../../../machines/agent/model-response.js'
import { CallAbort } from '../base/abort.js'
import type { TokenCounter } from '../context/token-counter.js'
import { toLightLogic } from '../interpreter/light-actor.js'
import { type AgentParts, toSpeaker } from '../live/agent-parts.js'
import { type EffectScope, getAgent } from '../live/runtime.js'
import { retrieveSnippets } from './build-request.js'
import { requestModel } from './request-model.js'
import { loadScreening, ToolBatch } from './run-tools.js'

const loadStep = loadOnce(() => import('./prepare-step.js'))
const loadGuards = loadOnce(() => import('./consult-guards.js'))
const loadFitting = loadOnce(() => import('./fit-transcript.js'))

export function createActors(parts: AgentParts) {
  const speaking = ({ context }: Pick<EffectScope, 'context'>): AgentParts =>
    toSpeaker(parts, context.speaker)
  const counters = new WeakMap<AgentParts, Promise<TokenCounter>>()
  return {
    requestModel: fromEffect<ModelOutput, { conclude: boolean }>(async (started) =>
      requestModel(parts, { ...started, ...getAgent(started.self) }),
    ),
    /** A callback actor, because XState drops its events once the actor has been stopped. */
    runTools: toLightLogic(
      fromCallback<AgentMachineEvent>(({ sendBack, self }) => {
        const { runtime, context, parent } = getAgent(self)
        const abort = new CallAbort()
        // Avoids a spread to save memory, because many runs may be parked in a batch.
        const batch = new ToolBatch(speaking({ context }), {
          runtime,
          context,
          parent,
          self,
          abort,
          sendBack,
        })
        void batch.start()
        return () => batch.stop()
      }),
    ),
    consultGuards: fromDurable(
      loadGuards,
      (code, effect: { input: { on: 'calls' | 'results' } } & EffectScope) =>
        code.consultGuards(parts, effect.input.on, effect),
    ),
    screenInput: fromDurable(loadScreening, (code, effect) => code.screenInput(parts, effect)),
    screenCalls: fromDurable(loadScreening, (code, effect) => code.screenCalls(speaking(effect), effect)),
    screenResults: fromDurable(loadScreening, (code, effect) => code.screenResults(parts, effect)),
    screenOutput: fromDurable(loadScreening, (code, effect) => code.screenOutput(parts, effect)),
    prepareStep: fromDurable(loadStep, (code, effect) => code.prepareStep(speaking(effect), effect)),
    retrieve: fromDurable(
      async () => retrieveSnippets,
      (retrieve, effect) => retrieve(parts, effect),
    ),
    /** Rejects with `context_overflow` if nothing fits, and with `missing_package` without a tokenizer. */
    fitContext: fromEffect<CompactionOutput>(async (started) => {
      const effect = { ...started, ...getAgent(started.self) }
      const { fitTranscript, loadCounter, toActorError } = await loadFitting()
      const agent = speaking(effect)
      try {
        const counter = counters.get(agent) ?? loadCounter(agent)
        counters.set(agent, counter)
        return await fitTranscript({ ...effect, parts: agent }, await counter)
      } catch (error) {
        throw toActorError(error)
      }
    }),
    backOff,
    deadline,
  }
}

type Work<Input> = { input: Input } & Pick<EffectScope, 'abort' | 'self'>

/** An agent's actor that starts when the log is durable. Loads its code before, because a run may stop meanwhile. */
const fromDurable = <Code, Output, Input = NonReducibleUnknown>(
  load: () => Promise<Code>,
  work: (code: Code, effect: { input: Input } & EffectScope) => Promise<Output>,
) =>
  fromEffect<Output, Input>(async (started) => {
    const effect = { ...started, ...getAgent(started.self) }
    const code = await load()
    await effect.runtime.waitUntilDurable()
    effect.abort.throwIfAborted()
    return work(code, effect)
  })

const resolvedType = 'xstate.promise.resolve'
const rejectedType = 'xstate.promise.reject'

/**
 * Like `fromPromise`, but with a `CallAbort` instead of an AbortController, and the actor is a light actor. Without
 * either of these, a step takes 1.2 to 1.3 × the CPU time (112 to 134 µs and 118 to 140 µs, instead of 93 µs).
 */
export function fromEffect<Output, Input = NonReducibleUnknown>(
  work: (started: Work<Input>) => Promise<Output>,
): PromiseActorLogic<Output, Input> {
  const aborts = new WeakMap<AnyActorRef, CallAbort>()
  return toLightLogic<PromiseActorLogic<Output, Input>>({
    config: work,
    getInitialSnapshot: (_scope, input) => ({ status: 'active', output: undefined, error: undefined, input }),
    start: ({ status, input }, { self }) => {
      if (status !== 'active') return
      const abort = new CallAbort()
      aborts.set(self, abort)
      const settle = (type: string, data: unknown): void => {
        aborts.delete(self)
        if (self.getSnapshot().status === 'active') self.send({ type, data })
      }
      work({ input: input as Input, abort, self }).then(
        (output) => settle(resolvedType, output),
        (error: unknown) => settle(rejectedType, error),
      )
    },
    transition: (snapshot, event, { self }) => {
      if (snapshot.status !== 'active') return snapshot
      const { data } = event
      switch (event.type) {
        case resolvedType:
          return { status: 'done', output: data as Output, error: undefined, input: undefined }
        case rejectedType:
          return { status: 'error', output: undefined, error: data, input: undefined }
        case 'xstate.stop':
          aborts.get(self)?.abort()
          aborts.delete(self)
          return { status: 'stopped', output: undefined, error: undefined, input: undefined }
        default:
          return snapshot
      }
    },
    getPersistedSnapshot: (snapshot) => snapshot,
    restoreSnapshot: (snapshot) => snapshot as never,
  })
}

const backOff = fromPromise<void, { until: number }>(({ input, signal, self }) => {
  const { clock, time } = getAgent(self).runtime
  return new Promise((resolve) => {
    let timer: unknown
    const wait = (): void => {
      // A restored run may resume after that time.
      const delay = Math.max(0, input.until - time.now())
      timer = clock.setTimeout(() => {
        const left = input.until - time.now()
        // Platform timers can fire early. The check prevents an endless wait on a clock that does not advance.
        if (left > 0 && (left < delay || left <= 1)) wait()
        else resolve()
      }, delay)
    }
    wait()
    signal.addEventListener('abort', () => {
      clock.clearTimeout(timer)
    })
  })
})

const deadline = fromCallback<AgentMachineEvent, { at: number }>(({ input, sendBack, self }) => {
  const { clock, time } = getAgent(self).runtime
  let timer: unknown
  const wait = (): void => {
    const left = input.at - time.now()
    // Platform timers have a maximum delay, so a distant deadline needs several.
    if (left <= 0) sendBack({ type: 'DEADLINE' })
    else timer = clock.setTimeout(wait, left)
  }
  wait()
  return () => {
    clock.clearTimeout(timer)
  }
})
