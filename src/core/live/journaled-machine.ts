import { type AnyActorRef, type StateMachine, transition as look } from 'xstate'
import { isRestState, isWorkState } from '../../../machines/agent/run-result.js'
import { agentMachine } from '../../../machines/agent.machine.js'
import { needsOutputScreening, waitsForBudget } from '../../../machines/agent/conditions.js'
import type {
  AgentContext,
  AgentInput,
  Features,
  AgentMachineEvent,
  PartialAnswer,
} from '../../../machines/agent/context.js'
import type { ToolTraits } from '../../../machines/agent/batch-calls.js'
import { addUsage } from '../../../machines/agent/usage.js'
import { hasUnclearedContent } from '../../../machines/agent/mask-uncleared.js'
import { findAbandonedCalls } from './abandoned-sub-agents.js'
import type { RunInput } from '../sessions/input-history.js'
import { agentTables, ChartTables } from '../interpreter/chart-tables.js'
import { type Interpreter, createTableTransition } from '../interpreter/table-transition.js'
import { completeSnapshot } from '../sessions/log/stored-state.js'
import {
  type Binding,
  AgentRuntime,
  findRuntime,
  type AgentActorScope,
  type RuntimeParts,
} from './runtime.js'
import { toLinkField } from '../sessions/journal.js'
import type { IsContextFree } from '../tools/tool.js'
import { toPlainError } from '../base/errors.js'

/**
 * The agent machine. Its input can also be a string or messages. An actor that is restored from a snapshot needs no
 * input. If tools require a `context`, create the input with `agent.createInput`.
 */
export type AgentMachine<AppContext = unknown> =
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
        IsContextFree<AppContext> extends true ? AgentInput | RunInput | undefined : AgentInput,
        Output,
        Emitted,
        Meta,
        Schema
      >
    : never

export interface JournaledOptions {
  parts: RuntimeParts & { interpreter: Interpreter }
  open(input: unknown): { input: AgentInput; binding: Binding }
  /** By input and by restored snapshot. A snapshot that the app stored has none. */
  bindings: WeakMap<object, Binding>
  toolsFor(binding: Binding, speaker: string | null): Record<string, ToolTraits>
  /** Ends a sub-agent that exists only in the store. */
  abandon(runtime: AgentRuntime, context: AgentContext, callId: string): void
}

type Implementations = Parameters<AgentMachine['provide']>[0]

/**
 * What `provide` returns, but with the same state nodes, because XState takes a millisecond to create them. It finds
 * implementations through the machine of a snapshot, never through a node.
 */
function copyMachine(machine: AgentMachine, implementations: Implementations): AgentMachine {
  const prototype = Object.getPrototypeOf(machine) as AgentMachine
  const kinds = Object.entries(machine.implementations).map(([kind, known]) => [
    kind,
    { ...known, ...implementations[kind as keyof Implementations] },
  ])
  const copy = Object.assign(Object.create(prototype) as AgentMachine, machine, {
    implementations: Object.fromEntries(kinds) as AgentMachine['implementations'],
  })
  // XState binds these in its constructor.
  copy.transition = prototype.transition.bind(copy)
  copy.getInitialSnapshot = prototype.getInitialSnapshot.bind(copy)
  copy.getPersistedSnapshot = prototype.getPersistedSnapshot.bind(copy)
  copy.restoreSnapshot = prototype.restoreSnapshot.bind(copy)
  copy.start = prototype.start.bind(copy)
  return copy
}

/**
 * The agent machine with these implementations and a write-ahead log: each event is converted to plain JSON, timestamped,
 * appended, then applied. Effects start after `transition()` and await `journal.flush()`, so none precedes its durable
 * cause. Unlike an inspector, this also works for children of other machines.
 */
export function createJournaledMachine(
  implementations: Implementations,
  options: JournaledOptions,
  base = agentMachine as AgentMachine,
  baseTables = agentTables,
): AgentMachine {
  const machine = copyMachine(base, implementations)
  const tables = implementations.actions || implementations.guards ? new ChartTables(machine) : baseTables
  // oxlint-disable-next-line unbound-method -- bound to the machine
  const { transition: transitionByXState, getInitialSnapshot, restoreSnapshot, start } = machine
  const { parts, bindings } = options
  const transition =
    parts.interpreter === 'xstate'
      ? transitionByXState
      : (createTableTransition(machine, tables) as unknown as AgentMachine['transition'])

  return Object.assign(machine, {
    provide: ((more) => createJournaledMachine(more, options, machine, tables)) as AgentMachine['provide'],

    getInitialSnapshot: ((scope, machineInput) => {
      const { input, binding } = options.open(machineInput)
      const agentScope = scope as unknown as AgentActorScope
      const runtime = new AgentRuntime(agentScope, input.runId, parts, binding, input)
      return getInitialSnapshot(runtime.scope as unknown as typeof scope, input)
    }) as AgentMachine['getInitialSnapshot'],

    restoreSnapshot: ((snapshot, scope) => {
      const known = bindings.get(snapshot)
      // A bound snapshot comes from a log that was checked when it was read.
      const whole = known ? { ...snapshot, historyValue: {} } : completeSnapshot(snapshot)
      const { runId } = (whole as unknown as { context: AgentContext }).context
      // Other snapshots do not contain the app's `context`, which the actor's input may have.
      const { input } = (scope.self as { options?: { input?: unknown } }).options ?? {}
      const binding = known ?? { context: bindings.get(input as object)?.context }
      const runtime = new AgentRuntime(scope as unknown as AgentActorScope, runId, parts, binding, null)
      // RESUMED starts the children with fresh input. XState would restart them with their old input.
      const childless = { ...whole, children: {} }
      return restoreSnapshot(
        childless as unknown as typeof snapshot,
        runtime.scope as unknown as typeof scope,
      )
    }) as AgentMachine['restoreSnapshot'],

    start: (snapshot: Parameters<typeof start>[0], scope: AgentActorScope) => {
      const runtime = findRuntime(scope.self)
      runtime?.begin()
      // Effects write to the log as soon as they start, and the first write must list the session as running.
      if (runtime?.isRestored === false) runtime.onReached(snapshot)
      runtime?.emitRestoredState(snapshot.context)
      start(snapshot)
      if (runtime?.isRestored) runtime.watchExpiry(snapshot.context)
      if (runtime?.isRestored && snapshot.status === 'active' && isWorkState(snapshot.context.state)) {
        // Restarts the effects, with fresh input.
        const tools = options.toolsFor(runtime.binding, snapshot.context.speaker ?? null)
        const isKnown = JSON.stringify(tools) === JSON.stringify(snapshot.context.tools)
        scope.self.send({ type: 'RESUMED', ...(!isKnown && { tools }) })
      }
    },

    transition: ((snapshot, event, scope) => {
      const runtime = findRuntime(scope.self as AnyActorRef)
      // A pure `transition()` uses an actor that is never started.
      if (!runtime?.started) return transition(snapshot, event, scope)
      // The closing chunk and the step ends are emitted after the transition, so that the answer is in the transcript
      // when subscribers receive them.
      const scene = { context: snapshot.context, event }
      // The attempt is repeated once budget is available.
      const isOver = endsRequest.has(event.type) && !needsOutputScreening(scene) && !waitsForBudget(scene)
      const text = isOver ? runtime.closeStream(scope.defer) : ''
      runtime.endSteps(event, scope.defer)
      if ((event.type as string) === 'xstate.stop') {
        runtime.isLeft = runtime.isHalted
        runtime.endChildren([], () => undefined)
        runtime.watchExpiry(null)
        if (snapshot.status === 'active') scope.defer(() => runtime.telemetry?.end())
        return transition(snapshot, event, scope)
      }
      const cut = stopsRequest.has(event.type)
        ? collectPartialAnswer(runtime, snapshot.context.pendingAnswer === null ? text : '', event)
        : null
      const sealed = sealEvent(event, snapshot.context.features, runtime.readTime(snapshot.context), cut)
      runtime.isLeft = runtime.hasLostRun(sealed)
      const startsWork = (): boolean =>
        sealed.type === 'RESUMED' ||
        (isRestState(snapshot.context.state) &&
          isWorkState(look(agentMachine, snapshot, sealed)[0].context.state))
      const link = runtime.telemetry && startsWork() ? runtime.telemetry.link() : null
      runtime.append({ type: 'event', event: sealed, ...toLinkField(link) })
      runtime.listener?.onMachineEvent(event)
      const next = transition(snapshot, sealed, runtime.scope as unknown as typeof scope)
      runtime.onReached(next)
      if (next.status !== 'active') runtime.watchExpiry(null)
      else if (isRestState(next.context.state) || timesQuestions.has(event.type)) {
        runtime.watchExpiry(next.context)
        runtime.warnOfMissingTimers()
      }
      if (runtime.hasLostRun(sealed)) {
        runtime.releaseChildren()
        return next
      }
      const abandoned = findAbandonedCalls(runtime, snapshot.context, next.context, sealed)
      const abandon = (callId: string): void => options.abandon(runtime, snapshot.context, callId)
      runtime.endChildren(next.context.calls, abandon)
      for (const { id } of abandoned) abandon(id)
      return next
    }) as AgentMachine['transition'],
  })
}

const timesQuestions: ReadonlySet<string> = new Set(['APPROVE', 'APPROVAL_EXPIRED', 'CHILD_WAITING'])

/** Events that stop a request but keep its partial answer. */
const stopsRequest: ReadonlySet<string> = new Set(['CANCEL', 'DEADLINE', 'STORE_FAILED'])

/** Events that end a request, with its outcome or from outside. */
const endsRequest: ReadonlySet<string> = new Set([
  ...['model', 'conclusion', 'outputShields'].flatMap((id) => [
    `xstate.done.actor.${id}`,
    `xstate.error.actor.${id}`,
  ]),
  'CANCEL',
  'DEADLINE',
  'RESUMED',
  'STORE_FAILED',
  'xstate.stop',
])

/** What a stopped request leaves: its text, and the usage of the request and of sub-agents. */
function collectPartialAnswer(
  runtime: AgentRuntime,
  text: string,
  event: AgentMachineEvent,
): PartialAnswer | null {
  const spent = runtime.openBill?.getUsageSoFar() ?? null
  // Sub-agents are stopped before the run, because their usage is part of the run's usage.
  const below = runtime.hasLostRun(event) ? runtime.takeChildrenUsage() : runtime.stopChildren()
  const usage = spent && below ? addUsage(spent, below) : (spent ?? below)
  return text === '' && usage === null ? null : { text, usage }
}

/** The event in the journal's format: plain JSON with a timestamp. */
function sealEvent(
  event: AgentMachineEvent,
  features: Features,
  now: number,
  partial: PartialAnswer | null,
): AgentMachineEvent {
  const sealed = { now, ...event } as AgentMachineEvent
  if (hasUnclearedContent(event, features)) Object.assign(sealed, { withheld: true })
  if ('error' in sealed) sealed.error = toPlainError(sealed.error) as typeof sealed.error
  if (partial) Object.assign(sealed, { partial })
  return sealed
}
