import type { AnyActorRef, NonReducibleUnknown, PromiseActorLogic } from 'xstate'
import { CallAbort } from '../base/abort.js'
import { toLightLogic } from '../interpreter/light-actor.js'

/** What an effect is given. */
export interface EffectInput<Input> {
  input: Input
  /** Aborts when the effect is not needed any more. */
  abort: CallAbort
  /** The actor that it is. */
  self: AnyActorRef
}

const resolvedType = 'xstate.promise.resolve'
const rejectedType = 'xstate.promise.reject'

/** Like `fromPromise`, but it creates the AbortController only when the signal is read: most requests never read it. */
export function fromEffect<Output, Input = NonReducibleUnknown>(
  work: (given: EffectInput<Input>) => Promise<Output>,
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
