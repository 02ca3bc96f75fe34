import type { AnyActorRef } from 'xstate'
import type { AgentEvent } from '../../../machines/agent/announcements.js'
import { type RunResult, isRestState } from '../../../machines/agent/run-result.js'
import type { Clock } from '../base/clock.js'
import type { AgentMachine } from '../live/journaled-machine.js'
import type { FoldedRun } from '../sessions/fold-session.js'
import type { SessionLog } from '../sessions/log/session-log.js'
import type { Session } from '../sessions/session.js'
import type { StructuredOutput } from '../structured/structured-output.js'
import type { DelegateRequest } from '../tools/tool.js'
import type { ToolSet } from '../tools/tool-set.js'
import type { Inspector } from './safe-listeners.js'
import { createStoreFailedEvent } from '../sessions/journal.js'

export interface RunOrigin {
  input?: object
  snapshot?: FoldedRun
  /** Absent if the session is not in a store. */
  log?: SessionLog
  queuedId?: string
}

export interface ParentLink {
  /** The parent actor, and the id that this actor has in it. */
  parent: AnyActorRef
  id: string
  watch: DelegateRequest['watch']
  onEvent: (event: AgentEvent) => void
}

/** What all runs of an agent have in common. */
export interface AgentRunParts {
  machine: AgentMachine
  clock: Clock
  /** The tools of an agent in the session. Null selects its first agent. */
  tools: (speaker: string | null | undefined) => ToolSet
  output: StructuredOutput | undefined
}

export interface RunParts extends AgentRunParts {
  runId: string
  session: Session
  /** A promise if the session has to be read first. If it rejects, the run is refused. */
  origin: RunOrigin | Promise<RunOrigin>
  signal?: AbortSignal | undefined
  /** Resolves when the run may start. If it rejects, the run is refused. */
  ready?: Promise<void> | undefined
  inspect?: Inspector | undefined
  above?: ParentLink
}

const noListeners: readonly (() => void)[] = []

/** The promise for the next rest. Results are created lazily, because a run can rest many times. */
export class RestPromise<Result> {
  #open: { resolve: (result: Result) => void; reject: (error: unknown) => void } | undefined
  #promise: Promise<Result> | undefined
  #make: (() => Result) | undefined
  #reached = false
  #version = 0
  #listeners: readonly (() => void)[] = noListeners

  get promise(): Promise<Result> {
    return (this.#promise ??= this.#make ? Promise.resolve(this.#make()) : this.#createPromise())
  }

  get isReached(): boolean {
    return this.#reached
  }

  /** Unless the run has continued by then. `unkept` creates the result of a rest that could not be stored, or null. */
  async reachLater(
    written: Promise<void> | undefined,
    make: () => Result | Promise<Result>,
    unkept: (result: Result, error: unknown) => Result | null,
  ): Promise<void> {
    const turn = (this.#version += 1)
    const failure = await (written ?? Promise.resolve()).then(
      () => null,
      (error: unknown) => ({ error }),
    )
    if (turn !== this.#version) return
    const reached = await make()
    if (turn !== this.#version) return
    const result = failure === null ? reached : unkept(reached, failure.error)
    if (result !== null) this.reach(() => result)
  }

  /** Reaches a rest. A rest can be reached again without being left, for example after one of several approvals. */
  reach(make: () => Result): void {
    this.#make = make
    this.#reached = true
    if (this.#open) this.#open.resolve(make())
    else this.#promise = undefined
    this.#open = undefined
    for (const listener of this.#listeners) listener()
  }

  leave(): void {
    this.#version += 1
    if (!this.#reached) return
    this.#reached = false
    this.#make = undefined
    this.#promise = undefined
  }

  refuse(error: unknown): void {
    this.#reached = true
    void this.promise
    this.#open?.reject(error)
    this.#open = undefined
  }

  onReach(listener: () => void): () => void {
    this.#listeners = this.#listeners.concat(listener)
    return () => {
      this.#listeners = this.#listeners.filter((one) => one !== listener)
    }
  }

  #createPromise(): Promise<Result> {
    const promise = new Promise<Result>((resolve, reject) => {
      this.#open = { resolve, reject }
    })
    // Prevents an unhandled rejection if the run is refused.
    promise.catch(() => undefined)
    return promise
  }
}

/** The result of an unwritten end. The error is added, not thrown, because the answer has been paid for. */
export function toUnsavedResult(result: RunResult, error: unknown): RunResult | null {
  if (isRestState(result.state)) return null
  return { error: { ...createStoreFailedEvent(error).failure, recoverable: true }, ...result } as RunResult
}
