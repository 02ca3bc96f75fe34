import { isRestState, isWorkState } from '../../../machines/agent/outcome.js'
import { type AnyActorRef, type StateMachine, transition as look } from 'xstate'
import type { agentMachine } from '../../../machines/agent.machine.js'
import { isHeld } from '../../../machines/agent/conditions.js'
import type { AgentContext, AgentInput, Features } from '../../../machines/agent/context.js'
import type { AgentMachineEvent, PartialAnswer } from '../../../machines/agent/events.js'
import type { BatchCall, ToolTraits } from '../../../machines/agent/results.js'
import { addUsage } from '../../../machines/agent/usage.js'
import { holdsUncleared } from '../../../machines/agent/uncleared.js'
import { abandonedCalls } from './abandon.js'
import type { RunInput } from '../sessions/history.js'
import { placed } from '../sessions/log/placed-state.js'
import { wholeSnapshot } from '../sessions/whole-snapshot.js'
import { type Binding, Live, liveOf, type Scope, setLive, type Surroundings } from './live.js'
import { linked } from '../sessions/journal.js'
import { plainError } from '../base/plain-error.js'

/**
 * The agent machine, which also takes what a user says as its input: a text, or messages. Only an actor that is restored
 * from a snapshot needs none.
 */
export type AgentMachine =
  typeof agentMachine extends StateMachine<
    infer Context,
    infer Event,
    infer Children,
    infer Actors,
    infer Actions,
    infer Guards,
    infer Delays,
    infer Value,
    infer Tags,
    AgentInput,
    infer Output,
    infer Emitted,
    infer Meta,
    infer Schema
  >
    ? StateMachine<
        Context,
        Event,
        Children,
        Actors,
        Actions,
        Guards,
        Delays,
        Value,
        Tags,
        AgentInput | RunInput | undefined,
        Output,
        Emitted,
        Meta,
        Schema
      >
    : never

export interface JournaledOptions extends Surroundings {
  /** What a caller passes as `input`, as the machine's own input and the run's binding. */
  open(input: unknown): { input: AgentInput; binding: Binding }
  /** What a run that is restored from this snapshot is bound to; undefined for a snapshot that an app has kept itself. */
  reopen(snapshot: object): Binding | undefined
  /** The tools of this program, for a run that is bound to this. */
  toolsFor(binding: Binding): Record<string, ToolTraits>
  /** Ends a sub-agent that is nowhere but in the store. */
  abandon(live: Live, context: AgentContext, call: BatchCall): void
}

/**
 * The agent machine with a write-ahead journal: an event is made plain, stamped with the time, appended, then applied.
 * What it starts runs after `transition()` returns and awaits `journal.flush()`, so no effect precedes its durable
 * cause. It works embedded in other machines, where an inspector does not.
 */
export function journaled(plain: AgentMachine, options: JournaledOptions): AgentMachine {
  const machine = plain.provide({})
  // oxlint-disable-next-line unbound-method -- XState binds these to the machine; provide is called on it below
  const { transition, getInitialSnapshot, restoreSnapshot, start, provide } = machine

  return Object.assign(machine, {
    provide: ((implementations) =>
      journaled(provide.call(machine, implementations) as AgentMachine, options)) as AgentMachine['provide'],

    getInitialSnapshot: ((scope, given) => {
      const { input, binding } = options.open(given)
      const live = new Live(scope as unknown as Scope, input.runId, options, binding, input)
      setLive(scope.self as AnyActorRef, live)
      return getInitialSnapshot(live.scope as unknown as typeof scope, input)
    }) as AgentMachine['getInitialSnapshot'],

    restoreSnapshot: ((snapshot, scope) => {
      const binding = options.reopen(snapshot)
      // What is bound comes from a log, which was looked at when it was read.
      const whole = binding ? placed(snapshot) : wholeSnapshot(snapshot)
      const { runId } = (whole as unknown as { context: AgentContext }).context
      const live = new Live(scope as unknown as Scope, runId, options, binding ?? {}, null)
      setLive(scope.self as AnyActorRef, live)
      // XState would start the stored children again, with their old input; RESUMED starts them with fresh input.
      const childless = { ...whole, children: {} }
      return restoreSnapshot(childless as unknown as typeof snapshot, live.scope as unknown as typeof scope)
    }) as AgentMachine['restoreSnapshot'],

    start: (snapshot: Parameters<typeof start>[0], scope: Scope) => {
      const live = liveOf(scope.self)
      live?.begin()
      live?.tellFound(snapshot.context)
      start(snapshot)
      if (live?.isRestored && snapshot.status === 'active' && isWorkState(snapshot.context.state))
        scope.self.send(resumed(snapshot.context, options.toolsFor(live.binding)))
    },

    transition: ((snapshot, event, scope) => {
      const live = liveOf(scope.self as AnyActorRef)
      // A pure `transition()` runs on an actor that never starts: nothing to stamp, nothing to log.
      if (!live?.started) return transition(snapshot, event, scope)
      // The closing chunk and the ends of steps are announced with what the event leads to, and first: whoever reacts to
      // them finds the answer in the transcript.
      const isOver = endsRequest.has(event.type) && !isHeld({ context: snapshot.context, event })
      const text = isOver ? live.closeStream(scope.defer) : ''
      live.endSteps(event, scope.defer)
      if ((event.type as string) === 'xstate.stop') {
        live.endChildren([])
        if (snapshot.status === 'active') scope.defer(() => live.telemetry?.end())
        return transition(snapshot, event, scope)
      }
      const cut = stopsRequest.has(event.type)
        ? cutOff(live, snapshot.context.held === null ? text : '')
        : null
      // At a rest the run's clock stands still: what it waits for begins anew.
      if (isRestState(snapshot.context.state) && snapshot.context.attempt === 1) live.time.set()
      const sealed = seal(event, snapshot.context.features, live.time.now(), cut)
      const link =
        live.telemetry && goesOn(sealed, snapshot.context, () => look(plain, snapshot, sealed)[0].context)
          ? live.telemetry.link()
          : null
      live.binding.journal?.append(
        link === null ? { type: 'event', event: sealed } : { type: 'event', event: sealed, ...linked(link) },
      )
      live.heard(event)
      const next = transition(snapshot, sealed, live.scope as unknown as typeof scope)
      live.binding.journal?.onReached?.(next)
      const abandoned = abandonedCalls(live, snapshot.context, next.context, sealed)
      live.endChildren(next.context.calls)
      for (const call of abandoned) options.abandon(live, snapshot.context, call)
      return next
    }) as AgentMachine['transition'],
  })
}

/** Events that cut a request off: what had arrived of the answer is kept. */
const stopsRequest: ReadonlySet<string> = new Set(['CANCEL', 'DEADLINE', 'STORE_FAILED'])

/** Events that end a request in progress: its outcome, or somebody from outside. */
const endsRequest: ReadonlySet<string> = new Set([
  'xstate.done.actor.model',
  'xstate.error.actor.model',
  'xstate.done.actor.conclusion',
  'xstate.error.actor.conclusion',
  'xstate.done.actor.outputShields',
  'xstate.error.actor.outputShields',
  'CANCEL',
  'DEADLINE',
  'RESUMED',
  'STORE_FAILED',
  'xstate.stop',
])

/** What is there of an answer that is stopped midway, and what was used for it and by sub-agents; null for nothing. */
function cutOff(live: Live, text: string): PartialAnswer | null {
  const spent = live.asking?.soFar() ?? null
  // Sub-agents are stopped before the run is: what they have used belongs to it.
  const below = live.stopChildren()
  const usage = spent && below ? addUsage(spent, below) : (spent ?? below)
  return text === '' && usage === null ? null : { text, usage }
}

/** What starts anew, with fresh input, whatever a restored run was waiting for. */
function resumed({ tools }: AgentContext, now: Record<string, ToolTraits>): AgentMachineEvent {
  const adopted = keepChildIds(tools, now)
  const isKnown = JSON.stringify(adopted) === JSON.stringify(tools)
  return isKnown ? { type: 'RESUMED' } : { type: 'RESUMED', tools: adopted }
}

/** A run that an earlier version began keeps the ids of its sub-agents' sessions: their logs have no others. */
function keepChildIds(
  tools: Record<string, ToolTraits>,
  now: Record<string, ToolTraits>,
): Record<string, ToolTraits> {
  return Object.fromEntries(
    Object.entries(now).map(([name, traits]) => {
      const { nested: _nested, ...former } = traits
      return [name, tools[name]?.delegate && !tools[name].nested ? former : traits]
    }),
  )
}

/** Whether the run works from this event on: it was at rest, or in the hands of a process that is gone. */
function goesOn(event: AgentMachineEvent, before: AgentContext, after: () => AgentContext): boolean {
  return event.type === 'RESUMED' || (isRestState(before.state) && isWorkState(after().state))
}

/** The event as the journal keeps it: plain JSON, with the time. */
function seal(
  event: AgentMachineEvent,
  features: Features,
  now: number,
  partial: PartialAnswer | null,
): AgentMachineEvent {
  const sealed = { now, ...event } as AgentMachineEvent
  if (holdsUncleared(event, features)) Object.assign(sealed, { withheld: true })
  if ('error' in sealed) sealed.error = plainError(sealed.error) as typeof sealed.error
  if (partial) Object.assign(sealed, { partial })
  return sealed
}
