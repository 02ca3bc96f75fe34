import { releaseRun } from '../core/live/release-run.js'
import { isWorkState } from '../../machines/agent/run-result.js'
import type { Run } from '../core/run/run.js'
import { type CliIO, writeNotice } from './command.js'

/** Seconds for which a run continues after SIGTERM. */
export const drainSeconds = 20

/** The error for a run that was released while active, so that another process can resume it. */
export class ReleasedRunError extends Error {
  constructor(readonly sessionId: string) {
    super('The run was released and can be resumed.')
  }
}

/** Drains a run after SIGTERM. The run asks no more questions, and stops at its next durable point after `drainMs`. */
export class RunDrain {
  /** Resolves when SIGTERM arrives. */
  readonly sigtermArrived: Promise<void>
  /** Rejects with a `ReleasedRunError` when the session is released. Never resolves. */
  readonly released: Promise<never>
  readonly #io: Pick<CliIO, 'sigterm' | 'stderr'>
  readonly #removeListener: () => void
  readonly #drainMs: number
  #resolveSigterm: () => void = () => undefined
  #rejectReleased: (error: unknown) => void = () => undefined
  #run: Run | undefined
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(io: Pick<CliIO, 'sigterm' | 'stderr'>, drainMs: number) {
    this.sigtermArrived = new Promise((resolve) => (this.#resolveSigterm = resolve))
    this.released = new Promise((_, reject) => (this.#rejectReleased = reject))
    this.released.catch(() => undefined)
    this.#drainMs = drainMs
    this.#io = io
    this.#removeListener = io.sigterm.setListener(() => {
      this.#resolveSigterm()
      if (this.#run) this.#scheduleRelease(this.#run)
    })
  }

  get hasBegun(): boolean {
    return this.#io.sigterm.hasArrived
  }

  follow(run: Run): void {
    this.#run = run
    if (this.hasBegun) this.#scheduleRelease(run)
  }

  /** Releases the session of a run that rests or has ended, even if the run is interactive. */
  async finish(): Promise<void> {
    this.#removeListener()
    clearTimeout(this.#timer)
    const run = this.#run
    this.#run = undefined
    if (this.hasBegun && run) await releaseRun(run)
  }

  #scheduleRelease(run: Run): void {
    const drainMs = isWorkState(run.state) ? this.#drainMs : 0
    if (drainMs > 0)
      writeNotice(
        this.#io,
        `the process is shutting down: the run continues for at most ${drainMs / 1000} s, then it can be resumed.`,
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
