import type { ActorScope, AnyActorRef, AnyEventObject, SnapshotFrom } from 'xstate'
import type { agentMachine } from '../../../machines/agent.machine.js'
import { extendObject } from '../../../guards/lib/json.js'
import type { AgentEvent, EmittedEvent } from '../../../machines/agent/announcements.js'
import type { AgentContext, AgentInput, AgentMachineEvent } from '../../../machines/agent/context.js'
import { isRequest, listAnswerableCalls, listRequests } from '../../../machines/agent/questions.js'
import type { BatchCall } from '../../../machines/agent/batch-calls.js'
import { addUsage, type Usage } from '../../../machines/agent/usage.js'
import type { BudgetsOption, SharedBudget } from '../budgets/shared-budget.js'
import type { PriceBook } from '../prices/price-book.js'
import type { Policy } from '../tools/policy.js'
import type { SessionStore } from '../sessions/store/store.js'
import type { ChildRun } from './child-run.js'
import { AnswerStream, type ShownAnswer, type Defer } from './answer-stream.js'
import type { CallAbort } from '../base/abort.js'
import { type Clock, RunClock, unrefTimer } from '../base/clock.js'
import { isRestState } from '../../../machines/agent/run-result.js'
import { findNextExpiry } from '../../../machines/agent/due-times.js'
import { OpenSteps } from './open-steps.js'
import { type Journal, type JournalEntry, toLinkField, createStoreFailedEvent } from '../sessions/journal.js'
import { freezeOnce } from '../base/values.js'
import { createId } from '../base/platform.js'
import { type SafeTelemetry, type MeasuringOptions, measureRun } from '../telemetry/safe-telemetry.js'
import type { TelemetryParent } from '../telemetry/telemetry.js'

export interface PoliciesAbove {
  policies: readonly Policy[]
  path: readonly string[]
}

/** Options for one run, apart from the run's input. Neither the model nor the journal receives these options. */
export interface Binding {
  journal?: Journal | undefined
  context?: unknown
  /** Event numbers continue after those of earlier processes. */
  lastEventSeq?: number
  /** Holds the logs of the run and its sub-agents. */
  store?: SessionStore
  depth?: number
  /** Of sub-agents. */
  maxDepth?: number
  /** Of a sub-agent, combined with those of the parent run. */
  prices?: PriceBook
  /** In addition to the agent's budgets. */
  budgets?: BudgetsOption | undefined
  /** The shared budgets of the parent run, if this is a sub-agent. */
  budgetsAbove?: readonly SharedBudget[] | undefined
  tags?: () => Readonly<Record<string, string>>
  /** Of a sub-agent: the policies of the parent run, and the names of the sub-agents that lead to this one. */
  policiesAbove?: PoliciesAbove | undefined
  /** Of a sub-agent: the parent run's terms of approval. */
  termsAbove?: Pick<AgentInput, 'approvers' | 'expiry'> | undefined
  /** Link to the telemetry of an earlier process, from the log. */
  link?: string | null
  /** Of a sub-agent: the telemetry of the parent run. */
  above?: TelemetryParent | undefined
}

export interface RuntimeParts extends MeasuringOptions {
  clock: Clock
  prices: PriceBook
}

/** Observes the journal entries of an actor. Must not throw. */
export interface ActorFollower {
  onEntry(entry: JournalEntry): void
  /** Called with the state after the last entry. */
  onReached(reached: AgentSnapshot): void
}

type AgentSnapshot = SnapshotFrom<typeof agentMachine>

/** The scope of any actor, with untyped events. */
export type AgentActorScope = ActorScope<never, AnyEventObject>

/**
 * What a running agent actor has apart from its state. Looked up by actor, never by run id. Only this file and
 * journaled-machine.ts use XState's actor scope.
 */
export class AgentRuntime {
  /** The scope of the machine, which stamps emitted events. */
  readonly scope: AgentActorScope
  readonly #emitStamped: AgentActorScope['emit']
  readonly clock: Clock
  readonly time: RunClock
  readonly binding: Binding
  /** The prices of responses. A sub-agent also uses the prices of the parent run. */
  readonly prices: PriceBook
  telemetry: SafeTelemetry | undefined
  readonly #parts: RuntimeParts
  readonly #runId: string
  /** Until the run starts. Null for a restored run. */
  #input: AgentInput | null
  readonly isRestored: boolean
  started = false
  #seq: number
  /** Makes the event ids of a restored run unique across processes. */
  readonly #origin: string
  /** Events for late subscribers: the last state change and the open requests since then. */
  #currentEvents: AgentEvent[] = []
  #hasEmittedState = false
  #stream: AnswerStream | null = null
  #steps: OpenSteps | undefined
  #children: Map<string, ChildRun> | undefined
  listener: { onMachineEvent(event: AgentMachineEvent): void; onExpired(): void } | undefined
  #followers: Set<ActorFollower> | undefined
  /** The request in progress. If it is stopped, its cost so far is billed. */
  openBill: { getUsageSoFar(): Usage | null } | null = null
  isHalted = false
  #expiryTimer: unknown
  #hasWarnedOfTimers = false
  /** Another process resumes the run, so work started elsewhere must continue. */
  isLeft = false
  #onHalt: (() => void) | undefined

  constructor(
    scope: AgentActorScope,
    runId: string,
    parts: RuntimeParts,
    binding: Binding,
    input: AgentInput | null,
  ) {
    const { clock, prices } = parts
    this.#runId = runId
    this.#parts = parts
    this.#input = input
    this.isRestored = input === null
    this.#seq = binding.lastEventSeq ?? 0
    this.#origin = input ? runId : `${runId}.${createId().slice(0, 8)}`
    binding.journal?.setEventCounter?.(() => this.#seq)
    this.clock = clock
    this.time = new RunClock(clock, binding.journal?.resumesAt)
    this.binding = binding
    this.prices = binding.prices ?? prices
    this.#emitStamped = scope.emit
    this.scope = { ...scope, emit: (announcement) => this.emit(announcement as unknown as EmittedEvent) }
    runtimes.set(scope.self, this)
  }

  /**
   * Logs the input before the run does anything. If the initial state is final, XState emits events without starting
   * the machine, so the first event also counts as a start.
   */
  begin(): void {
    if (this.started) return
    this.started = true
    const input = this.#input
    const { link: from, above } = this.binding
    if (this.#parts.telemetry !== undefined || above !== undefined)
      this.telemetry = measureRun(this.#parts, {
        runId: this.#runId,
        input,
        link: from,
        above,
        self: this.scope.self,
        emit: (announcement) => this.emit(announcement),
      })
    if (!input) return
    const link = this.telemetry?.link()
    this.append({ type: 'start', input, ...toLinkField(link) })
    this.#input = null
  }

  append(entry: JournalEntry): void {
    this.binding.journal?.append(entry)
    this.#followers?.forEach((follower) => follower.onEntry(entry))
  }

  /** Called with the state after the last entry. */
  onReached(reached: AgentSnapshot): void {
    this.binding.journal?.onReached?.(reached)
    this.#followers?.forEach((follower) => follower.onReached(reached))
  }

  follow(follower: ActorFollower): () => void {
    const followers = (this.#followers ??= new Set())
    followers.add(follower)
    return () => void followers.delete(follower)
  }

  hasListener(type: EmittedEvent['type']): boolean {
    return hasListener(this.scope.self as AnyActorRef, type)
  }

  /**
   * Stands still while the run rests. A run that rests until a time keeps the time of the process in which it rested.
   */
  readTime(context: AgentContext): number {
    const isIdle = isRestState(context.state) && context.attempt === 1
    if (isIdle && !(this.isRestored && (context.wakeAt ?? findNextExpiry(context)) !== null))
      this.time.resetToClock()
    return this.time.now()
  }

  /** Sets the timer for the next expiring question, which the parent run has for a sub-agent. Null disables it. */
  watchExpiry(context: AgentContext | null): void {
    const at = context && this.binding.depth === undefined ? findNextExpiry(context) : null
    if (this.#expiryTimer !== undefined) this.clock.clearTimeout(this.#expiryTimer)
    this.#expiryTimer = undefined
    if (at === null) return
    const look = (): void => {
      const { status, context: latest } = this.scope.self.getSnapshot() as AgentSnapshot
      if (status !== 'active' || this.isHalted) return
      const now = this.readTime(latest)
      if (now < (findNextExpiry(latest) ?? Infinity)) this.watchExpiry(latest)
      else if (this.listener) this.listener.onExpired()
      else this.scope.self.send({ type: 'APPROVAL_EXPIRED' })
    }
    this.#expiryTimer = this.clock.setTimeout(look, Math.max(0, at - this.time.now()))
    // If this process exits, the alarm in the store ends the question.
    unrefTimer(this.#expiryTimer)
  }

  /** Warns once if no other process would end an expiring question in time. */
  warnOfMissingTimers(): void {
    const { store } = this.binding
    if (this.#expiryTimer === undefined || !store || store.timers || this.#hasWarnedOfTimers) return
    this.#hasWarnedOfTimers = true
    const message =
      'The store has no timers. An approval request expires only while a process holds the session, or when it is resumed.'
    this.emit({ type: 'warning', code: 'no_timers', message })
  }

  /** Numbers and emits an event of the machine, or one that is not in the log, such as a delta. */
  emit(announcement: EmittedEvent): void {
    this.begin()
    this.telemetry?.event(announcement)
    const { type } = announcement
    const seq = ++this.#seq
    // Events without a listener also use a number, so late subscribers never receive a number twice.
    if (!replayedTypes.has(type) && !this.hasListener(type)) {
      freezeOnce(announcement)
      return
    }
    const stamp = { id: `${this.#origin}:${seq}`, runId: this.#runId, seq, at: this.clock.now() }
    const event = freezeOnce(extendObject(announcement, stamp))
    if (event.type === 'state_changed') this.#currentEvents = [event]
    else if (isRequest(event)) this.#currentEvents.push(event)
    this.#emitStamped(event)
  }

  /** Resolves when all entries are durable. No effect may start before. If they cannot be stored, the run ends. */
  waitUntilDurable(): Promise<void> | undefined {
    // Never resolves, because the process that halts the run also stops the caller.
    if (this.isHalted) return new Promise<never>(() => undefined)
    return this.#endOnFailure(this.binding.journal?.flush())
  }

  /** Resolves once this process is confirmed to still own the run, if that is not certain. Otherwise the run ends. */
  waitUntilHeld(): Promise<void> | undefined {
    return this.#endOnFailure(this.binding.journal?.checkHeld?.())
  }

  #endOnFailure(written: Promise<void> | undefined): Promise<void> | undefined {
    return written?.catch((error: unknown) => {
      this.scope.self.send(createStoreFailedEvent(error))
      // Never resolves, because the event that was just sent stops the caller.
      return new Promise<never>(() => undefined)
    })
  }

  /** Prevents new effects, because another process will resume the run. */
  halt(): void {
    if (this.isHalted) return
    this.isHalted = true
    this.#onHalt?.()
  }

  onHalt(listener: () => void): void {
    this.#onHalt = listener
    if (this.isHalted) listener()
  }

  openStream(stepId: string, attempt: number): AnswerStream {
    this.#stream = new AnswerStream(stepId, attempt, this, this.#stream)
    return this.#stream
  }

  /** The part of the current answer that subscribers have received. */
  get answer(): ShownAnswer | null {
    return this.#stream
  }

  /** Streams the rest of a cleared answer, after a reset if the emitted text differs. */
  streamCleared(text: string): void {
    const shown = this.#stream?.text ?? ''
    if (text.startsWith(shown)) this.#stream?.write(text.slice(shown.length), '')
    else this.#stream?.replaceText(text)
  }

  closeStream(defer: Defer): string {
    const stream = this.#stream
    this.#stream = null
    stream?.close(defer)
    return stream?.text ?? ''
  }

  get steps(): OpenSteps {
    return (this.#steps ??= new OpenSteps(this.clock, this))
  }

  endSteps(event: AgentMachineEvent, defer: Defer): void {
    this.#steps?.endByEvent(event, this.scope.self as AnyActorRef, defer)
  }

  get children(): Map<string, ChildRun> {
    return (this.#children ??= new Map())
  }

  get hasChildren(): boolean {
    return (this.#children?.size ?? 0) > 0
  }

  stopChildren(except?: ChildRun): Usage | null {
    for (const child of this.#children?.values() ?? [])
      if (child !== except && child.isUnderWay) child.cancel()
    return this.takeChildrenUsage(except)
  }

  takeChildrenUsage(except?: ChildRun): Usage | null {
    let sum: Usage | null = null
    for (const child of this.#children?.values() ?? []) {
      if (child === except) continue
      const usage = child.takeUsage()
      sum = sum && usage ? addUsage(sum, usage) : (sum ?? usage)
    }
    return sum
  }

  /** The run remains in the last logged state. */
  hasLostRun(event: AgentMachineEvent): boolean {
    return event.type === 'STORE_FAILED' || this.binding.journal?.hasFailed === true
  }

  /** If the log cannot be written, it shows the run as active, so its sub-agents stay active, too. */
  releaseChildren(): void {
    // A sub-agent's log that cannot be written stays unchanged.
    for (const child of this.#children?.values() ?? []) child.release().catch(() => undefined)
    this.#children?.clear()
  }

  /** Ends sub-agents whose calls are closed. `onUnsaved` is called for those whose end could not be written. */
  endChildren(calls: readonly BatchCall[], onUnsaved: (callId: string) => void): void {
    for (const [callId, child] of this.#children ?? []) {
      if (calls.some(({ id, result }) => id === callId && result === undefined)) continue
      this.#children?.delete(callId)
      child.cancel()
      child.onUnsaved(() => onUnsaved(callId))
    }
  }

  listCurrentEvents(context: AgentContext): readonly AgentEvent[] {
    const open = listAnswerableCalls(context)
    return this.#currentEvents.filter(
      (event) =>
        !isRequest(event) ||
        open.some(({ callId, fingerprint }) => callId === event.callId && fingerprint === event.fingerprint),
    )
  }

  /** A restored run had no subscribers in this process before. */
  emitRestoredState(context: AgentContext): void {
    if (!this.isRestored || this.#hasEmittedState || context.state === null) return
    this.#hasEmittedState = true
    const { state: to, reason } = context
    this.emit({ type: 'state_changed', from: null, to, reason })
    if (to === 'WAITING_FOR_INPUT') for (const request of listRequests(context)) this.emit(request)
  }
}

/** The types of events that late subscribers receive. */
const replayedTypes: ReadonlySet<EmittedEvent['type']> = new Set([
  'state_changed',
  'approval_requested',
  'elicitation_requested',
])

/** XState has no API for this. If its internals change, every type counts as having a listener. */
function hasListener(actor: AnyActorRef, type: string): boolean {
  const { eventListeners } = actor as { eventListeners?: ReadonlyMap<string, unknown> }
  return eventListeners === undefined || eventListeners.has('*') || eventListeners.has(type)
}

const runtimes = new WeakMap<AnyActorRef, AgentRuntime>()

export function findRuntime(actor: AnyActorRef): AgentRuntime | undefined {
  return runtimes.get(actor)
}

/** `self` is the actor of the effect, `context` the agent's when the effect started. */
export interface EffectScope {
  /** Aborts when the actor is stopped. */
  abort: CallAbort
  self: AnyActorRef
  runtime: AgentRuntime
  context: AgentContext
}

/** The agent that invoked an actor, with its current context. */
export function getAgent(
  child: AnyActorRef,
): Pick<EffectScope, 'runtime' | 'context'> & { parent: AnyActorRef } {
  // oxlint-disable-next-line no-underscore-dangle -- XState has no other way to get the parent
  const parent = child._parent
  const runtime = parent && runtimes.get(parent)
  if (!parent || !runtime) throw new Error('This actor runs only inside agent.machine.')
  return { runtime, parent, context: (parent.getSnapshot() as { context: AgentContext }).context }
}
