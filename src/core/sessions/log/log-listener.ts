/** Whoever wants to know what becomes of a session's log while this process has it. */
export interface LogListener {
  /** The session is ours. */
  onHeld(): void
  /** More of it is durable. */
  onWritten(): void
  /** It is anybody's. */
  onReleased(): void
}

export const noLogListener: LogListener = {
  onHeld: () => undefined,
  onWritten: () => undefined,
  onReleased: () => undefined,
}
