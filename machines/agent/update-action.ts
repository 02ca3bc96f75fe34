import type { ActionFunction, AnyMachineSnapshot } from 'xstate'
import type { EmittedEvent } from './announcements.js'
import { type AgentContext, patchContext } from './context.js'
import type { AgentMachineEvent } from './machine-events.js'

/**
 * A step of the machine's bookkeeping: from context and event to what changes. `emit` sends it to subscribers.
 * Pure and total: no clock, no randomness, never throws.
 */
export type Update<Params = undefined> = (
  context: AgentContext,
  event: AgentMachineEvent,
  emit: (announcement: EmittedEvent) => void,
  params: Params,
) => Partial<AgentContext> | undefined

type Action<Params> = ActionFunction<
  AgentContext,
  AgentMachineEvent,
  AgentMachineEvent,
  Params extends undefined ? undefined : Params,
  never,
  never,
  never,
  never,
  EmittedEvent
>

/**
 * An update as an action of the chart: what `enqueueActions` would make of it with an `emit` for each announcement and
 * one `assign`, in a single step. XState's own way costs a tenth of the loop: eleven functions an action, and a snapshot
 * and a copy of the context for each thing that it enqueues. This is the one place that knows how XState asks its
 * built-in actions what they do.
 */
export function toAction<Params = undefined>(update: Update<Params>): Action<Params> {
  const step = (
    context: AgentContext,
    event: AgentMachineEvent,
    emit: (announcement: EmittedEvent) => void,
    params: Params,
  ): AgentContext | undefined => {
    const patch = update(context, event, emit, params)
    return patch && patchContext(context, patch)
  }
  const resolve: ResolveAction<Params> = (scope, snapshot, args, params) => {
    const emit = (announcement: EmittedEvent): void => {
      const exec = (): void => scope.defer(() => scope.emit(announcement))
      scope.actionExecutor({ type: 'xstate.emit', info: args, params: { event: announcement }, exec })
    }
    const context = step(args.context, args.event, emit, params)
    if (context === undefined) return [snapshot, undefined, undefined]
    return [{ ...snapshot, context }, undefined, undefined]
  }
  const action = Object.assign(() => undefined, { type: 'xstate.enqueueActions', resolve, step })
  return action as unknown as Action<Params>
}

/** An action without XState around it: the new context, or undefined where nothing changes. */
export type ContextStep = (
  context: unknown,
  event: { type: string },
  emit: (announcement: EmittedEvent) => void,
  params: unknown,
) => unknown

/** What an action made by `toAction` does; undefined for any other. */
export function findContextStep(action: unknown): ContextStep | undefined {
  return typeof action === 'function' && 'step' in action ? (action.step as ContextStep) : undefined
}

/** How a built-in action changes a snapshot; the other members of the tuple are for actions of several steps. */
type ResolveAction<Params> = (
  scope: ExecutionScope,
  snapshot: AnyMachineSnapshot,
  args: { context: AgentContext; event: AgentMachineEvent },
  params: Params,
) => [AnyMachineSnapshot, undefined, undefined]

interface ExecutionScope {
  /** Does something once the transition has been applied. */
  defer(work: () => void): void
  emit(announcement: EmittedEvent): void
  actionExecutor(action: { type: string; info: unknown; params: unknown; exec: () => void }): void
}
