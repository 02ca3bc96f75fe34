/** What is used of `@restatedev/restate-sdk`: the module is handed over, not imported. */
export interface RestateLike {
  object(definition: { name: string; handlers: Record<string, unknown>; options?: object }): object
  handlers: {
    object: {
      exclusive(options: object, work: (context: RestateContext, input: never) => Promise<unknown>): unknown
      shared(options: object, work: (context: RestateContext, input: never) => Promise<unknown>): unknown
    }
  }
  TerminalError: new (message: string, options?: { errorCode?: number }) => Error
}

/** A promise of Restate's own. */
export interface DurablePromise<Value> extends Promise<Value> {
  orTimeout(ms: number): DurablePromise<Value>
}

/** What a handler is given. */
export interface RestateContext {
  readonly key: string
  run<Value>(name: string, step: () => Promise<Value>, options?: object): DurablePromise<Value>
  sleep(ms: number): DurablePromise<void>
  awakeable<Value>(): { id: string; promise: DurablePromise<Value> }
  resolveAwakeable(id: string, value: unknown): void
  genericSend(call: { service: string; method: string; key: string; parameter: Uint8Array }): unknown
  get<Value>(name: string): Promise<Value | null>
  set(name: string, value: unknown): void
  clear(name: string): void
}
