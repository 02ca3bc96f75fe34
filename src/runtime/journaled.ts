import type { AnyActorRef } from 'xstate'
import type { agentMachine } from '../../machines/agent.machine.js'
import type { AgentContext, AgentInput } from '../../machines/agent/context.js'
import type { AgentMachineEvent, PartialAnswer } from '../../machines/agent/events.js'
import type { Clock } from './clock.js'
import { type Binding, Live, liveOf, type Scope, setLive } from './live.js'
import { plainError } from './plain-error.js'

export type AgentMachine = typeof agentMachine

export interface JournaledOptions {
  clock: Clock
  /** What a caller passes as `input`, as the machine's own input and the run's binding. */
  open(input: unknown): { input: AgentInput; binding: Binding }
  /** What a run that is restored from this snapshot is bound to. */
  reopen(snapshot: object): Binding
  /** An answer that was stopped midway, with an estimate of what it cost. */
  partial(text: string, context: AgentContext): PartialAnswer
}

/**
 * The agent machine with a write-ahead journal: an event is made plain, stamped with the time, appended, then applied.
 * What it starts runs after `transition()` returns and awaits `journal.flushed()`, so no effect precedes its durable
 * cause. It works embedded in other machines, where an inspector does not.
 */
export function journaled(plain: AgentMachine, options: JournaledOptions): AgentMachine {
  const { clock } = options
  const machine = plain.provide({})
  // oxlint-disable-next-line unbound-method -- XState binds these to the machine; provide is called on it below
  const { transition, getInitialSnapshot, restoreSnapshot, start, provide } = machine

  return Object.assign(machine, {
    provide: ((implementations) =>
      journaled(provide.call(machine, implementations) as AgentMachine, options)) as AgentMachine['provide'],

    getInitialSnapshot: ((scope, given) => {
      const { input, binding } = options.open(given)
      const live = new Live(scope as unknown as Scope, input.runId, clock, binding, input)
      setLive(scope.self as AnyActorRef, live)
      return getInitialSnapshot(live.scope as unknown as typeof scope, input)
    }) as AgentMachine['getInitialSnapshot'],

    restoreSnapshot: ((snapshot, scope) => {
      const { runId } = (snapshot as unknown as { context: { runId: string } }).context
      const live = new Live(scope as unknown as Scope, runId, clock, options.reopen(snapshot), null)
      setLive(scope.self as AnyActorRef, live)
      // XState would start the stored children again, with their old input; RESUMED starts them with fresh input.
      const childless = { ...snapshot, children: {} }
      return restoreSnapshot(childless as unknown as typeof snapshot, live.scope as unknown as typeof scope)
    }) as AgentMachine['restoreSnapshot'],

    start: (snapshot: Parameters<typeof start>[0], scope: Scope) => {
      liveOf(scope.self)?.begin()
      start(snapshot)
    },

    transition: ((snapshot, event, scope) => {
      const live = liveOf(scope.self as AnyActorRef)
      // A pure `transition()` runs on an actor that never starts: nothing to stamp, nothing to log.
      if (!live?.started) return transition(snapshot, event, scope)
      const isStop = (event.type as string) === 'xstate.stop'
      const closing = isStop || stopsRequest.has(event.type)
      // The stream's closing chunk comes before what the event itself announces.
      const text = closing ? live.closeStream(scope.defer) : ''
      if (isStop) return transition(snapshot, event, scope)
      const sealed = seal(
        event,
        clock.now(),
        text === '' ? undefined : options.partial(text, snapshot.context),
      )
      live.binding.journal?.append({ type: 'event', event: sealed })
      return transition(snapshot, sealed, live.scope as unknown as typeof scope)
    }) as AgentMachine['transition'],
  })
}

/** Events that end a request in progress from outside. */
const stopsRequest: ReadonlySet<string> = new Set(['CANCEL', 'DEADLINE', 'RESUMED'])

/** The event as the journal keeps it: plain JSON, with the time. */
function seal(event: AgentMachineEvent, now: number, partial: PartialAnswer | undefined): AgentMachineEvent {
  const sealed = { now, ...event } as AgentMachineEvent
  if ('error' in sealed) sealed.error = plainError(sealed.error) as typeof sealed.error
  if (partial && (sealed.type === 'CANCEL' || sealed.type === 'DEADLINE')) sealed.partial = partial
  return sealed
}
