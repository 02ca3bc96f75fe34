import {
  type AnyStateMachine,
  createEmptyActor,
  type EventFromLogic,
  type SnapshotFrom,
  type transition,
} from 'xstate'
import { createTableTransition } from './table-transition.js'
import type { TransitionScope } from './xstate-internals.js'

type PureTransition<Machine extends AnyStateMachine> = (
  snapshot: SnapshotFrom<Machine>,
  event: EventFromLogic<Machine>,
) => ReturnType<typeof transition<Machine>>

/**
 * XState's function `transition` for one machine, by tables: the next snapshot and the actions that a running actor would
 * execute. It starts nothing. XState creates an actor of the machine for each event; this creates one actor in all.
 */
export function createPureTransition<Machine extends AnyStateMachine>(
  machine: Machine,
): PureTransition<Machine> {
  const takeEvent = createTableTransition(machine)
  let scope: TransitionScope | undefined
  return (snapshot, event) => {
    scope ??= createInertScope()
    const actions: unknown[] = []
    scope.actionExecutor = (action) => void actions.push(action)
    return [takeEvent(snapshot as never, event, scope), actions] as unknown as ReturnType<
      PureTransition<Machine>
    >
  }
}

/** The scope of an actor that is never started: what it is told to do has no effect. */
function createInertScope(): TransitionScope {
  const self = createEmptyActor()
  const ignore = (): void => undefined
  const scope = {
    self,
    system: self.system,
    id: '',
    sessionId: '',
    logger: ignore,
    defer: ignore,
    emit: ignore,
    stopChild: ignore,
    actionExecutor: ignore,
  }
  return scope as unknown as TransitionScope
}
