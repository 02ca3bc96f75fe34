interface RunControls {
  release(run: object): Promise<void>
  /** Ends the questions of a resting run that have expired at the time `at`, which may come from a different clock. */
  expire(run: object, at: number): void
  /** Advances the run's clock to a time that a different clock has reached. */
  advance(run: object, at: number): void
}

let controls: RunControls | undefined

/** Called once by the `Run` class, which this layer cannot import. */
export function provideControls(of: RunControls): void {
  controls = of
}

export function expireRun(run: object, at: number): void {
  controls?.expire(run, at)
}

export function advanceRun(run: object, at: number): void {
  controls?.advance(run, at)
}

/** Releases a run to another process. No new effects start. Non-repeatable ones finish, others are dropped. */
export async function releaseRun(run: object): Promise<void> {
  await controls?.release(run)
}
