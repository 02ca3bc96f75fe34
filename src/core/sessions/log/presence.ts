/** Whoever wants to know what becomes of a session's log while this process has it. */
export interface Presence {
  /** The session is ours. */
  held(): void
  /** More of it is durable. */
  written(): void
  /** It is anybody's. */
  released(): void
}

export const nobodyPresent: Presence = {
  held: () => undefined,
  written: () => undefined,
  released: () => undefined,
}
