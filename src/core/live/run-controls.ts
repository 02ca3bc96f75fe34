/** `Run` replaces these functions, because this room cannot import it. They ignore objects that are not runs. */
export const runControls = {
  /** Releases a run to another process. No new effects start. Non-repeatable ones finish, others are dropped. */
  release: async (_run: object): Promise<void> => undefined,
  /** Ends the questions of a resting run that have expired at the time `at`, which may come from a different clock. */
  expire: (_run: object, _at: number): void => undefined,
  /** Advances the run's clock to a time that a different clock has reached. */
  advance: (_run: object, _at: number): void => undefined,
}
