import type { ToolResult } from '../../../machines/agent/batch-calls.js'
import type { CallAbort } from '../base/abort.js'
import { startsPerTick, yieldToEventLoop } from '../base/platform.js'
import { type CallOwner, type RunCallOptions, type RunnableCall, RunningCall } from './running-call.js'

export interface RunBatchOptions extends RunCallOptions {
  /** Maximum concurrent calls, at least 1. */
  readonly concurrency: number
  /** After an abort, no call starts and no callback is called. */
  readonly abort: CallAbort
  /** A function that is awaited before each call. If the function returns undefined, the call starts immediately. */
  ready?(): Promise<void> | undefined
  /** The result of the next call if the call may no longer start, or `waits` if the call waits for people. */
  refuseNext?(): ToolResult | 'waits' | null
  /** Called before a call is executed. */
  onStart?(callId: string): void
  /** Called once per call, in order of completion. Not called for calls that wait. */
  onResult(callId: string, result: ToolResult): void
  /** Called when each call has a result or waits. */
  onDone(): void
}

/** Runs calls in order with limited concurrency. Exceptions in callbacks stop neither the batch nor the process. */
export class RunningBatch implements CallOwner {
  readonly #calls: readonly RunnableCall[]
  readonly #options: RunBatchOptions
  readonly #lanes: (RunningCall | null)[]
  #used = 0
  /** Number of idle lanes that wait for `ready`. */
  #waiting = 0
  #inTurn = 0
  /** Idle lanes that wait for the next turn of the event loop. */
  #paused: number[] | undefined
  #isHalted = false

  constructor(calls: readonly RunnableCall[], options: RunBatchOptions) {
    const lanes = Math.min(calls.length, Math.max(1, options.concurrency || 1))
    this.#calls = calls
    this.#options = options
    this.#lanes = Array.from({ length: lanes }, () => null)
  }

  start(): void {
    for (const lane of this.#lanes.keys()) this.#takeNext(lane)
    if (this.#lanes.length === 0) this.#options.onDone()
  }

  stop(reason?: unknown): void {
    const { abort } = this.#options
    abort.abort(reason)
    for (const call of this.#lanes) call?.stop(abort.reason)
  }

  /** Starts no further calls. Returns the calls that were not started. */
  halt(): readonly RunnableCall[] {
    this.#isHalted = true
    return this.#calls.slice(this.#used)
  }

  onCallEnd(ended: RunningCall, result: ToolResult | null): void {
    if (this.#options.abort.aborted) return
    const lane = this.#lanes.indexOf(ended)
    this.#lanes[lane] = null
    if (result !== null) this.#report(ended.call, result)
    this.#takeNext(lane)
  }

  #report({ id }: RunnableCall, result: ToolResult): void {
    try {
      this.#options.onResult(id, result)
    } catch {
      // The remaining calls must still run.
    }
  }

  async #takeNextAfter(ready: Promise<void>, lane: number): Promise<void> {
    await ready
    this.#waiting -= 1
    this.#takeNext(lane, true)
  }

  /** Yields to the event loop after a number of calls that completed synchronously. */
  #isPaused(lane: number): boolean {
    if (this.#inTurn < startsPerTick) return false
    if (this.#paused) this.#paused.push(lane)
    else {
      this.#paused = [lane]
      void this.#takeNextTurn()
    }
    return true
  }

  async #takeNextTurn(): Promise<void> {
    await yieldToEventLoop()
    const lanes = this.#paused ?? []
    this.#paused = undefined
    this.#inTurn = 0
    for (const lane of lanes) this.#takeNext(lane)
  }

  /** Starts the next call in a lane. `isReady` means that `ready` has settled. */
  #takeNext(lane: number, isReady = false): void {
    const { abort } = this.#options
    const call = this.#calls[this.#used]
    if (abort.aborted || this.#isHalted) return
    if (call === undefined) {
      if (this.#waiting === 0 && this.#lanes.every((running) => running === null)) this.#options.onDone()
      return
    }
    if (!isReady && this.#isPaused(lane)) return
    const ready = isReady ? undefined : this.#options.ready?.()
    if (ready) {
      this.#waiting += 1
      void this.#takeNextAfter(ready, lane)
      return
    }
    this.#used += 1
    this.#inTurn += 1
    const refusal = this.#options.refuseNext?.() ?? null
    if (refusal !== null) {
      if (refusal !== 'waits') this.#report(call, refusal)
      this.#takeNext(lane)
      return
    }
    this.#options.onStart?.(call.id)
    // A subscriber may stop the batch here.
    if (!abort.aborted) this.#lanes[lane] = new RunningCall(call, this.#options, this)
  }
}
