import type { Observer, Operator, Subscription } from 'rxjs'
import { Observable } from 'rxjs/internal/Observable'
import type { InspectionEvent, Observer as InspectionObserver } from 'xstate'
import { ConfigError } from '../base/errors.js'

// The class that 'rxjs' exports, without loading its two hundred files in Node.

type Report = (error: unknown) => void

/** Reports errors of its subscribers, also when piped, instead of raising `uncaughtException`. */
export class SafeObservable<T> extends Observable<T> {
  readonly #report: Report

  constructor(report: Report, subscribe?: ConstructorParameters<typeof Observable<T>>[0]) {
    super(subscribe)
    this.#report = report
  }

  override lift<R>(operator?: Operator<T, R>): Observable<R> {
    const lifted = new SafeObservable<R>(this.#report)
    lifted.source = this
    lifted.operator = operator
    return lifted
  }

  override subscribe(
    observerOrNext?: Partial<Observer<T>> | ((value: T) => void) | null,
    error?: ((error: unknown) => void) | null,
    complete?: (() => void) | null,
  ): Subscription {
    const observer =
      typeof observerOrNext === 'function' || !observerOrNext
        ? { next: observerOrNext, error, complete }
        : observerOrNext
    // Operators use subscribers that pass errors down the pipe.
    if ('destination' in observer) return super.subscribe(observer as Observer<T>)
    return super.subscribe({
      next: this.#guard(observer.next?.bind(observer)),
      error: this.#guard(observer.error?.bind(observer) ?? this.#report),
      complete: this.#guard(observer.complete?.bind(observer)),
    })
  }

  #guard<Args extends unknown[]>(fn: ((...args: Args) => void) | undefined): (...args: Args) => void {
    return (...args) => {
      try {
        fn?.(...args)
      } catch (thrown) {
        this.#report(thrown)
      }
    }
  }
}

/** Receives XState's inspection events: actors, events, snapshots and transitions. */
export type Inspector = InspectionObserver<InspectionEvent> | ((event: InspectionEvent) => void)

export function checkInspector(inspector: Inspector | undefined): Inspector | undefined {
  if (inspector === undefined || typeof inspector === 'function') return inspector
  if (typeof inspector === 'object' && inspector !== null && typeof inspector.next === 'function')
    return inspector
  throw new ConfigError(
    'invalid_config',
    'inspect must be a function or an observer with next(), such as inspector.inspect.',
    'inspect',
  )
}

/** XState calls inspectors during a transition. One that throws is reported and not called again. */
export function safeInspector(
  inspector: Inspector,
  report: (thrown: unknown) => void,
): (event: InspectionEvent) => void {
  let isOff = false
  return (event) => {
    if (isOff) return
    try {
      if (typeof inspector === 'function') inspector(event)
      else inspector.next?.(event)
    } catch (thrown) {
      isOff = true
      report(thrown)
    }
  }
}
