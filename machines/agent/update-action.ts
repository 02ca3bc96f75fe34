import type { ActionFunction, AnyMachineSnapshot } from 'xstate'
import type { Emit, EmittedEvent } from './announcements.js'
import { type AgentContext, patchContext, type AgentMachineEvent } from './context.js'

/** Returns a context patch. Pure and total: updates use no clock or randomness and never throw. */
export type Update<Params = undefined> = (
  context: AgentContext,
  event: AgentMachineEvent,
  emit: Emit,
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
 * Converts an update to an action of the chart, like `enqueueActions` with an `emit` per event and one `assign`, but in
 * one step: `enqueueActions` would take a tenth of the loop's time. Only this module depends on how XState resolves its
 * built-in actions.
 */
export function toAction<Params = undefined>(update: Update<Params>): Action<Params> {
  const step = (context: AgentContext, event: AgentMachineEvent, emit: Emit, params: Params) => {
    const patch = update(context, event, emit, params)
    return patch && patchContext(context, patch)
  }
  const resolve: ResolveAction<Params> = (scope, snapshot, args, params) => {
    const emit: Emit = (announcement) => {
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

/** An action that changes nothing on other events. */
export function toActionOn<Type extends AgentMachineEvent['type']>(
  types: Type | readonly Type[],
  update: (
    context: AgentContext,
    event: Extract<AgentMachineEvent, { type: Type }>,
    emit: Emit,
  ) => Partial<AgentContext> | undefined,
): Action<undefined> {
  const known: readonly string[] = [types].flat()
  return toAction((context, event, emit) =>
    known.includes(event.type) ? update(context, event as Parameters<typeof update>[1], emit) : undefined,
  )
}

/** An action without XState. Returns the new context, or undefined if nothing changes. */
export type ContextStep = (context: unknown, event: { type: string }, emit: Emit, params: unknown) => unknown

/** The context step of an action created by `toAction`, or undefined for other actions. */
export function findContextStep(action: unknown): ContextStep | undefined {
  return typeof action === 'function' && 'step' in action ? (action.step as ContextStep) : undefined
}

/** As XState's built-in actions. Multi-step actions use the other members of the tuple. */
type ResolveAction<Params> = (
  scope: ExecutionScope,
  snapshot: AnyMachineSnapshot,
  args: { context: AgentContext; event: AgentMachineEvent },
  params: Params,
) => [AnyMachineSnapshot, undefined, undefined]

interface ExecutionScope {
  defer(work: () => void): void
  emit(announcement: EmittedEvent): void
  actionExecutor(action: { type: string; info: unknown; params: unknown; exec: () => void }): void
}
