/** A promise settled from outside. */
export class Cue<T> {
  resolve: (value: T) => void = () => undefined
  reject: (reason: unknown) => void = () => undefined
  readonly promise = new Promise<T>((resolve, reject) => {
    this.resolve = resolve
    this.reject = reject
  })

  constructor() {
    // The waiting code may be gone by then.
    this.promise.catch(() => undefined)
  }
}
