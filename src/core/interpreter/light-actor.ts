/* oxlint-disable no-underscore-dangle -- XState's own names for members of an actor and its system */
import type { ActorLogic, AnyActorRef, AnyEventObject, Observer, Snapshot } from 'xstate'
import type { ActorSystemInternals } from './xstate-internals.js'
import { getPlatform } from '../base/platform.js'

type AnyLogic = ActorLogic<Snapshot<unknown>, AnyEventObject>

/** Actor states, numbered as in XState. */
const notStarted = 0
const running = 1
const stopped = 2

/**
 * A child actor for one task, such as a request or a batch. It replaces XState's `Actor` and emits the same inspection
 * events, but needs no mailbox, scope and closures per actor. It has no children and emits nothing.
 */
export class LightActor {
  readonly logic: AnyLogic
  readonly id: string
  readonly src: string
  readonly options: { id: string; src: string; parent: AnyActorRef; input: unknown }
  readonly system: ActorSystemInternals
  readonly sessionId: string
  readonly systemId = undefined
  readonly _parent: AnyActorRef
  readonly _syncSnapshot = false
  _processingStatus = notStarted
  _snapshot: Snapshot<unknown>
  #observers: Set<Observer<Snapshot<unknown>>> | undefined
  /** Events that arrive while another one is processed. Undefined if none is processed. */
  #waiting: AnyEventObject[] | undefined

  constructor(logic: AnyLogic, options: LightActor['options']) {
    const { id, src, parent, input } = options
    this.logic = logic
    this.id = id
    this.src = src
    this.options = options
    this._parent = parent
    this.system = parent.system as unknown as ActorSystemInternals
    this.sessionId = this.system._bookId()
    this.system._sendInspectionEvent({ type: '@xstate.actor', actorRef: this })
    this._snapshot = logic.getInitialSnapshot(this.#scope, input)
  }

  /** The actor is its own scope, because it has all members that the logic of a single task needs. */
  get #scope(): never {
    return this as never
  }

  get self(): this {
    return this
  }

  get ref(): this {
    return this
  }

  /** XState's callback and promise logic requires this method. */
  emit(): void {}

  start(): this {
    if (this._processingStatus === running) return this
    this.system._register(this.sessionId, this)
    this._processingStatus = running
    const event = { type: 'xstate.init', input: this.options.input }
    const started = { type: '@xstate.event', sourceRef: this._parent, actorRef: this, event }
    this.system._sendInspectionEvent(started)
    this.#waiting ??= []
    try {
      this.logic.start?.(this._snapshot, this.#scope)
    } catch (error) {
      this.#fail(error)
      return this
    }
    this.#update(this._snapshot, event)
    this.#takeWaiting()
    return this
  }

  send(event: AnyEventObject): void {
    this.system._relay(undefined, this, event)
  }

  _send(event: AnyEventObject): void {
    if (this._processingStatus === stopped) return
    if (this._processingStatus === notStarted || this.#waiting) (this.#waiting ??= []).push(event)
    else {
      this.#waiting = []
      this.#take(event)
      this.#takeWaiting()
    }
  }

  stop(): never {
    throw new Error('A non-root actor cannot be stopped directly.')
  }

  _stop(): this {
    if (this._processingStatus === notStarted) this._processingStatus = stopped
    if (this._processingStatus === stopped) return this
    if (this.#waiting) this.#waiting.length = 0
    this._send({ type: 'xstate.stop' })
    return this
  }

  getSnapshot(): Snapshot<unknown> {
    return this._snapshot
  }

  getPersistedSnapshot(options?: unknown): Snapshot<unknown> {
    return this.logic.getPersistedSnapshot(this._snapshot, options)
  }

  subscribe(
    nextListener: Observer<Snapshot<unknown>> | ((snapshot: Snapshot<unknown>) => void),
    error?: (error: unknown) => void,
    complete?: () => void,
  ): { unsubscribe(): void } {
    const observer = (
      typeof nextListener === 'function' ? { next: nextListener, error, complete } : { ...nextListener }
    ) as Observer<Snapshot<unknown>>
    const { status } = this._snapshot
    if (this._processingStatus !== stopped) (this.#observers ??= new Set()).add(observer)
    else if (status === 'done') report(() => observer.complete?.())
    else if (status === 'error') notifyError(observer, this._snapshot.error)
    return { unsubscribe: () => void this.#observers?.delete(observer) }
  }

  on(): { unsubscribe(): void } {
    return { unsubscribe: () => undefined }
  }

  toJSON(): object {
    return { xstate$$type: 1, id: this.id }
  }

  #takeWaiting(): void {
    for (let event = this.#waiting?.shift(); event; event = this.#waiting?.shift()) this.#take(event)
    this.#waiting = undefined
  }

  #take(event: AnyEventObject): void {
    let next: Snapshot<unknown>
    try {
      next = this.logic.transition(this._snapshot, event, this.#scope)
    } catch (error) {
      this.#fail(error)
      return
    }
    this.#update(next, event)
    if (event.type === 'xstate.stop') this.#complete()
  }

  #update(snapshot: Snapshot<unknown>, event: AnyEventObject): void {
    this._snapshot = snapshot
    const { status } = snapshot
    if (status === 'active' || status === 'done')
      for (const observer of this.#observers ?? []) report(() => observer.next?.(snapshot))
    if (status === 'done') {
      this.#complete()
      const { id } = this
      const done = { type: `xstate.done.actor.${id}`, output: snapshot.output, actorId: id }
      this.system._relay(this, this._parent, done)
    } else if (status === 'error') this.#reportError(snapshot.error)
    this.system._sendInspectionEvent({ type: '@xstate.snapshot', actorRef: this, event, snapshot })
  }

  #fail(error: unknown): void {
    this._snapshot = { ...this._snapshot, status: 'error', output: undefined, error }
    this.#reportError(error)
  }

  #reportError(error: unknown): void {
    for (const observer of this.#end()) notifyError(observer, error)
    const { id } = this
    this.system._relay(this, this._parent, { type: `xstate.error.actor.${id}`, error, actorId: id })
  }

  #complete(): void {
    for (const observer of this.#end()) report(() => observer.complete?.())
  }

  #end(): Iterable<Observer<Snapshot<unknown>>> {
    const observers = this.#observers ?? []
    this.#observers = undefined
    if (this._processingStatus === running) {
      if (this.#waiting) this.#waiting.length = 0
      this._processingStatus = stopped
      this.system._unregister(this)
    }
    return observers
  }
}

function notifyError(observer: Observer<Snapshot<unknown>>, error: unknown): void {
  report(() => {
    if (!observer.error) throw error
    observer.error(error)
  })
}

/** Rethrows errors from observers globally, like XState. */
function report(work: () => void): void {
  try {
    work()
  } catch (error) {
    getPlatform().runSoon(() => {
      throw error
    })
  }
}

/** Marks logic with a single task, without children and emitted events, for which the tables create a light actor. */
export function toLightLogic<Logic extends object>(logic: Logic): Logic {
  return Object.assign(logic, { isLight: true })
}

export function isLightLogic(logic: unknown): boolean {
  return typeof logic === 'object' && logic !== null && 'isLight' in logic
}
