import type { Observable, Subscriber } from 'rxjs'
import type { Actor, Subscription } from 'xstate'
import type { AgentEvent } from '../../../machines/agent/announcements.js'
import type { AgentState } from '../../../machines/agent/run-result.js'
import type { AgentMachine } from '../live/journaled-machine.js'
import { findRuntime } from '../live/runtime.js'
import { describeError } from '../base/errors.js'
import { loadOnce } from '../base/platform.js'
import type { AnswerPiece } from '../structured/partial-objects.js'
import { SafeObservable } from './safe-listeners.js'
import type { RestPromise } from './run-parts.js'

type EventFilter = AgentEvent['type'] | '*'

interface Listener {
  of: EventFilter
  next(event: AgentEvent): void
  complete(): void
  /** Called when the run is refused. `warning` is for listeners without an error callback. */
  refused(error: unknown, warning: AgentEvent): void
}

const noListeners: readonly Listener[] = []

/** Subscribes to the actor only for types with a listener, because events without listeners cost almost nothing. */
export class EventHub {
  #actor: Actor<AgentMachine> | undefined
  readonly #rest: Pick<RestPromise<unknown>, 'isReached' | 'onReach'>
  #listeners: readonly Listener[] = noListeners
  #subscriptions: Map<EventFilter, Subscription> | undefined
  #events: Observable<AgentEvent> | undefined
  #text: Observable<string> | undefined
  #state: Observable<AgentState> | undefined
  #objects: Observable<object> | undefined
  #end: 'open' | 'completed' | { error: unknown; warning: AgentEvent } = 'open'
  #news: { news: (listener: Listener) => void; to: readonly Listener[] }[] | undefined
  #isNotifying = false
  #hasEnded = false

  constructor(rest: Pick<RestPromise<unknown>, 'isReached' | 'onReach'>) {
    this.#rest = rest
  }

  /** Subscribes to the actor. Subscribers that were added before this point receive all events. */
  attachActor(actor: Actor<AgentMachine>): void {
    this.#actor = actor
    for (const { of } of this.#listeners) this.#subscribe(of)
  }

  #subscribe(of: EventFilter): void {
    const subscriptions = (this.#subscriptions ??= new Map())
    if (!this.#actor || subscriptions.has('*') || subscriptions.has(of)) return
    if (of === '*') for (const each of subscriptions.values()) each.unsubscribe()
    else if (of !== 'run_ended') this.#subscribe('run_ended')
    const subscription = this.#actor.on(of, (event) => {
      const agentEvent = event as AgentEvent
      if (agentEvent.type === 'run_ended') this.#hasEnded = true
      this.#notify((listener) => listener.next(agentEvent))
    })
    subscriptions.set(of, subscription)
  }

  /** One event at a time, because a listener may cause the next event before the others have received the first. */
  #notify(news: (listener: Listener) => void): void {
    if (this.#listeners.length === 0) return
    const waiting = (this.#news ??= [])
    waiting.push({ news, to: this.#listeners })
    if (this.#isNotifying) return
    this.#isNotifying = true
    try {
      for (let next = waiting.shift(); next; next = waiting.shift()) {
        for (const listener of next.to) if (this.#listeners.includes(listener)) next.news(listener)
      }
    } finally {
      this.#isNotifying = false
    }
  }

  // Observables are created on first use, because most runs are only awaited.

  get events$(): Observable<AgentEvent> {
    return (this.#events ??= this.#observe('*', (subscriber) => ({
      next: (event) => subscriber.next(event),
    })))
  }

  get text$(): Observable<string> {
    return (this.#text ??= this.#observe('stream_chunk', (subscriber) => ({
      next: (event) => {
        if (event.type === 'stream_chunk' && event.text !== '') subscriber.next(event.text)
      },
    })))
  }

  get state$(): Observable<AgentState> {
    return (this.#state ??= this.#observe('state_changed', (subscriber) => ({
      next: (event) => {
        if (event.type === 'state_changed') subscriber.next(event.to)
      },
    })))
  }

  get object$(): Observable<object> {
    return (this.#objects ??= this.#observe('stream_chunk', (subscriber) => {
      const objects = readObjects((object) => subscriber.next(object))
      const answer = this.#actor && findRuntime(this.#actor)?.answer
      if (answer) objects.read({ ...answer, finished: false })
      return {
        next: (event) => {
          if (event.type === 'stream_chunk') objects.read(event)
        },
        complete: () =>
          void objects.ready.then(
            () => subscriber.complete(),
            (error: unknown) => subscriber.error(error),
          ),
      }
    }))
  }

  #observe<T>(
    of: EventFilter,
    open: (subscriber: Subscriber<T>) => Pick<Listener, 'next'> & Partial<Pick<Listener, 'complete'>>,
  ): Observable<T> {
    return new SafeObservable<T>(this.#createReporter(), (subscriber) => {
      const { next, complete = () => subscriber.complete() } = open(subscriber)
      const refused = (error: unknown, warning: AgentEvent): void => {
        next(warning)
        subscriber.error(error)
      }
      return this.#addListener({ of, next, complete, refused })
    })
  }

  complete(): void {
    this.#end = 'completed'
    this.#notify((listener) => {
      this.#remove(listener)
      listener.complete()
    })
  }

  fail(error: unknown, warning: AgentEvent): void {
    this.#end = { error, warning }
    this.#notify((listener) => {
      this.#remove(listener)
      listener.refused(error, warning)
    })
  }

  /** Iterates over the events up to the next rest. If a consumer stops early, the run is not affected. */
  iterate(): AsyncIterator<AgentEvent, undefined> {
    const undo: (() => void)[] = []
    const queue = new EventQueue<AgentEvent>(() => {
      for (const stop of undo) stop()
    })
    undo.push(
      this.#addListener({
        of: '*',
        next: (event) => queue.push(event),
        // Does not end here, because the result may not be durable yet.
        complete: () => undefined,
        refused: (error) => queue.end({ error }),
      }),
      this.#rest.onReach(() => queue.end()),
    )
    if (this.#rest.isReached) queue.end()
    return queue
  }

  /** Adds a listener. Late listeners receive the run's current state first. */
  #addListener(listener: Listener): () => void {
    const runtime = this.#actor && findRuntime(this.#actor)
    const context = this.#actor?.getSnapshot().context
    if (runtime?.started && context)
      for (const event of runtime.listCurrentEvents(context)) listener.next(event)
    if (this.#end === 'completed') listener.complete()
    else if (this.#end === 'open') {
      this.#listeners = this.#listeners.concat(listener)
      this.#subscribe(listener.of)
    } else listener.refused(this.#end.error, this.#end.warning)
    return () => this.#remove(listener)
  }

  #remove(listener: Listener): void {
    this.#listeners = this.#listeners.filter((one) => one !== listener)
  }

  /** Turns errors of a subscriber into `warning`s. Repeated ones, and those after the terminal event, are ignored. */
  #createReporter(): (thrown: unknown) => void {
    const reported = new Set<string>()
    return (thrown) => {
      const message = `A subscriber threw: ${describeError(thrown)}`
      if (this.#hasEnded || reported.has(message) || reported.size >= 10) return
      reported.add(message)
      if (this.#actor) findRuntime(this.#actor)?.emit({ type: 'warning', code: 'subscriber_error', message })
    }
  }
}

const loadPartialObjects = loadOnce(() => import('../structured/partial-objects.js'))

/** Parses objects from the pieces of an answer. Pieces wait until the parser is loaded. */
function readObjects(next: (object: object) => void) {
  const waiting: AnswerPiece[] = []
  let parse: ((piece: AnswerPiece) => void) | undefined
  const load = async (): Promise<void> => {
    const { createPartialReader } = await loadPartialObjects()
    const parsePiece = createPartialReader(next)
    // A subscriber may cause the next piece.
    for (let piece = waiting.shift(); piece; piece = waiting.shift()) parsePiece(piece)
    parse = parsePiece
  }
  /** Settles when all waiting pieces have been parsed. Rejects if the parser cannot be loaded. */
  const ready = load()
  // Prevents an unhandled rejection if the run is refused, because then no code awaits `ready`.
  ready.catch(() => undefined)
  const read = (piece: AnswerPiece): void => {
    if (parse) parse(piece)
    else waiting.push(piece)
  }
  return { ready, read }
}

type Read<Value> = IteratorResult<Value, undefined>

/** Supports concurrent reads. After the end it returns the remaining values, after `return()` none. */
export class EventQueue<Value> implements AsyncIterator<Value, undefined> {
  readonly #values: Value[] = []
  readonly #reads: ((result: Read<Value> | Promise<Read<Value>>) => void)[] = []
  readonly #onEnd: () => void
  #isOver = false
  #failure: { error: unknown } | null = null

  /** `onEnd` is called once, when no more values are accepted. */
  constructor(onEnd: () => void) {
    this.#onEnd = onEnd
  }

  push(value: Value): void {
    if (this.#isOver) return
    const resolve = this.#reads.shift()
    if (resolve) resolve({ done: false, value })
    else this.#values.push(value)
  }

  /** Ends the queue. `failure` is thrown once, after the remaining values. */
  end(failure: { error: unknown } | null = null): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#failure = failure
    this.#onEnd()
    for (const resolve of this.#reads.splice(0)) resolve(this.#endResult())
  }

  next(): Promise<Read<Value>> {
    if (this.#values.length > 0) return Promise.resolve({ done: false, value: this.#values.shift() as Value })
    const answer = this.#isOver
      ? this.#endResult()
      : new Promise<Read<Value>>((resolve) => void this.#reads.push(resolve))
    // The reader may be gone.
    answer.catch(() => undefined)
    return answer
  }

  return(): Promise<Read<Value>> {
    this.#values.length = 0
    this.end()
    this.#failure = null
    return this.#endResult()
  }

  #endResult(): Promise<Read<Value>> {
    const failure = this.#failure
    this.#failure = null
    return failure ? Promise.reject(failure.error) : Promise.resolve({ done: true, value: undefined })
  }
}
