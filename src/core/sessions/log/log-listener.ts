/** Is told what happens to a session's log while this process holds the session. */
export interface LogListener {
  /** The session is ours. */
  onHeld(): void
  /** More of it is durable. */
  onWritten(): void
  /** The session is released. */
  onReleased(): void
}

export const noLogListener: LogListener = {
  onHeld: () => undefined,
  onWritten: () => undefined,
  onReleased: () => undefined,
}
