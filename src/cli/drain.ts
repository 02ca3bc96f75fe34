import { isWorkState } from '../../machines/agent/run-result.js'
import { releaseRun } from '../core/live/runtime.js'
import type { Run } from '../core/run/run.js'
import type { CliIO } from './command.js'

/** How long a run goes on after SIGTERM, in seconds. */
export const drainSeconds = 20

/** The run was released while at work, so that another process can resume it. */
export class ReleasedRunError extends Error {
  constructor(readonly sessionId: string) {
    super('The run was released and can be resumed.')
  }
}

/**
 * Drains a run with a stored session at SIGTERM: the user is asked nothing more, the run goes on for at most `drainMs`, then
 * stops at its next durable point.
 */
export class RunDrain {
  /** Settles with SIGTERM. */
  readonly sigtermArrived: Promise<void>
  /** Rejects with a `ReleasedRunError` when the session is released; never settles otherwise. */
  readonly released: Promise<never>
  readonly #sigterm: CliIO['sigterm']
  readonly #removeListener: () => void
  readonly #drainMs: number
  readonly #stderr: CliIO['stderr']
  #resolveSigterm: () => void = () => undefined
  #rejectReleased: (error: unknown) => void = () => undefined
  #run: Run | undefined
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor({ sigterm, stderr }: Pick<CliIO, 'sigterm' | 'stderr'>, drainMs: number) {
    this.sigtermArrived = new Promise((resolve) => (this.#resolveSigterm = resolve))
    this.released = new Promise((_, reject) => (this.#rejectReleased = reject))
    this.released.catch(() => undefined)
    this.#drainMs = drainMs
    this.#stderr = stderr
    this.#sigterm = sigterm
    this.#removeListener = sigterm.setListener(() => this.#startDrain())
  }

  get hasBegun(): boolean {
    return this.#sigterm.hasArrived
  }

  /** Sets the run. */
  follow(run: Run): void {
    this.#run = run
    if (this.hasBegun) this.#scheduleRelease(run)
  }

  /** The run rests or has ended: releases its session, even if the run is interactive. */
  async finish(): Promise<void> {
    this.#removeListener()
    clearTimeout(this.#timer)
    const run = this.#run
    this.#run = undefined
    if (this.hasBegun && run) await releaseRun(run)
  }

  #startDrain(): void {
    this.#resolveSigterm()
    if (this.#run) this.#scheduleRelease(this.#run)
  }

  #scheduleRelease(run: Run): void {
    const drainMs = isWorkState(run.state) ? this.#drainMs : 0
    if (drainMs > 0)
      this.#stderr.write(
        `statewright: the process is shutting down: the run goes on for at most ${drainMs / 1000} s, then it can be resumed.\n`,
      )
    this.#timer = setTimeout(() => {
      this.#releaseRun(run).catch(this.#rejectReleased)
    }, drainMs)
  }

  async #releaseRun(run: Run): Promise<void> {
    await run.started
    this.#run = undefined
    await releaseRun(run)
    throw new ReleasedRunError(run.sessionId)
  }
}
