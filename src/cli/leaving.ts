import { isWorkState } from '../../machines/agent/run-result.js'
import { releaseRun } from '../core/live/release-run.js'
import type { Run } from '../core/run/run.js'
import type { CliIO } from './command.js'

/** How long a run goes on after SIGTERM, in seconds. */
export const drainSeconds = 20

/** The run was left at work, where another process can go on with it. */
export class LeftRun extends Error {
  constructor(readonly sessionId: string) {
    super('The run was left as it stands.')
  }
}

/**
 * What SIGTERM does to a run whose session is kept: nothing more is asked or answered; at work it goes on for a while, then
 * stops at its next durable point.
 */
export class Leaving {
  /** Settles with SIGTERM. */
  readonly begun: Promise<void>
  /** Rejects with a `LeftRun` once the session is free; never settles otherwise. */
  readonly left: Promise<never>
  readonly #ending: CliIO['ending']
  readonly #heed: () => void
  readonly #drainMs: number
  readonly #stderr: CliIO['stderr']
  #begin: () => void = () => undefined
  #fail: (error: unknown) => void = () => undefined
  #run: Run | undefined
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor({ ending, stderr }: Pick<CliIO, 'ending' | 'stderr'>, drainMs: number) {
    this.begun = new Promise((resolve) => (this.#begin = resolve))
    this.left = new Promise((_, reject) => (this.#fail = reject))
    this.left.catch(() => undefined)
    this.#drainMs = drainMs
    this.#stderr = stderr
    this.#ending = ending
    this.#heed = ending.heed(() => this.#end())
  }

  get hasBegun(): boolean {
    return this.#ending.hasBegun
  }

  /** This is the run. */
  follow(run: Run): void {
    this.#run = run
    if (this.hasBegun) this.#leaveLater(run)
  }

  /** It rests, or has ended: the session is anybody's, also one that an interactive run keeps. */
  async stop(): Promise<void> {
    this.#heed()
    clearTimeout(this.#timer)
    const run = this.#run
    this.#run = undefined
    if (this.hasBegun && run) await releaseRun(run)
  }

  #end(): void {
    this.#begin()
    if (this.#run) this.#leaveLater(this.#run)
  }

  #leaveLater(run: Run): void {
    const drainMs = isWorkState(run.state) ? this.#drainMs : 0
    if (drainMs > 0)
      this.#stderr.write(
        `statewright: this process is to end: the run goes on for ${drainMs / 1000} s at most, then it can be resumed.\n`,
      )
    this.#timer = setTimeout(() => {
      this.#leave(run).catch(this.#fail)
    }, drainMs)
  }

  async #leave(run: Run): Promise<void> {
    await run.started
    this.#run = undefined
    await releaseRun(run)
    throw new LeftRun(run.sessionId)
  }
}
