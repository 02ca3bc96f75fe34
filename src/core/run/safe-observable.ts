import type { Observer, Operator, Subscription } from 'rxjs'
// The same class as that of 'rxjs', whose two hundred files Node would all load.
import { Observable } from 'rxjs/internal/Observable'

type Report = (error: unknown) => void

/**
 * An observable whose subscribers may throw: what they throw is reported instead of reaching `uncaughtException`. That
 * holds for what is piped from it, too.
 */
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
    const observer: Partial<Observer<T>> =
      typeof observerOrNext === 'function' || !observerOrNext
        ? {
            ...(observerOrNext && { next: observerOrNext }),
            ...(error && { error }),
            ...(complete && { complete }),
          }
        : observerOrNext
    // Operators subscribe with subscribers of their own, which pass errors down the pipe: those stay as they are.
    if ('destination' in observer) return super.subscribe(observer)
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
