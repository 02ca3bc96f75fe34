import type { ToolResult } from '../../../machines/agent/batch-calls.js'
import type { CallAbort } from '../base/abort.js'
import { startsPerTick, yieldToEventLoop } from '../base/platform.js'
import { type CallOwner, type RunCallOptions, type RunnableCall, RunningCall } from './running-call.js'

export interface RunBatchOptions extends RunCallOptions {
  /** Calls that run at once; at least 1. */
  readonly concurrency: number
  /** Once it is aborted nothing is started, and nothing is told any more. */
  readonly abort: CallAbort
  /** Asked before each call, which starts once this settles; undefined: at once. */
  ready?(): Promise<void> | undefined
  /** Told before a call is executed. */
  onStart?(callId: string): void
  /** Told exactly once a call, in the order in which they end; not of sub-agents that rest. */
  onResult(callId: string, result: ToolResult): void
  /** Told when each call has its result, or rests. */
  onDone(): void
}

/**
 * Carries out calls, `concurrency` at a time, starting them in order. What a callback throws is its owner's affair and
 * stops neither the batch nor the process.
 */
export class RunningBatch implements CallOwner {
  readonly #calls: readonly RunnableCall[]
  readonly #options: RunBatchOptions
  /** What each lane carries out: it takes the next call when it is free. */
  readonly #lanes: (RunningCall | null)[]
  #taken = 0
  /** Lanes that are free, and wait until they may take a call. */
  #waiting = 0
  /** Calls that were started in this turn of the event loop, as far as is known. */
  #inTurn = 0
  /** Lanes that are free, and wait for the next turn. */
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

  /** Stops the batch: its results are not needed any more. */
  stop(reason?: unknown): void {
    const { abort } = this.#options
    abort.abort(reason)
    for (const call of this.#lanes) call?.stop(abort.reason)
  }

  /** Nothing more is started, and the batch is never done here. Returns what has not been started. */
  halt(): readonly RunnableCall[] {
    this.#isHalted = true
    return this.#calls.slice(this.#taken)
  }

  onCallEnd(ended: RunningCall, result: ToolResult | null): void {
    if (this.#options.abort.aborted) return
    const lane = this.#lanes.indexOf(ended)
    this.#lanes[lane] = null
    if (result !== null) {
      try {
        this.#options.onResult(ended.call.id, result)
      } catch {
        // The next calls still have to run.
      }
    }
    this.#takeNext(lane)
  }

  async #takeNextAfter(ready: Promise<void>, lane: number): Promise<void> {
    await ready
    this.#waiting -= 1
    this.#takeNext(lane, true)
  }

  /**
   * Calls that do not wait for anything follow each other in one turn of the event loop: after so many, everything else in
   * the process has its own.
   */
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

  /** `isReady`: it was asked whether a call may start. */
  #takeNext(lane: number, isReady = false): void {
    const { abort } = this.#options
    const call = this.#calls[this.#taken]
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
    this.#taken += 1
    this.#inTurn += 1
    this.#options.onStart?.(call.id)
    // A subscriber may stop the batch when the call starts.
    if (!abort.aborted) this.#lanes[lane] = new RunningCall(call, this.#options, this)
  }
}
