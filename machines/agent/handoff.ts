import type { Message } from './messages.js'

/**
 * The agent that speaks after a transcript: the one that it was last handed to. Null: the session's first agent. The notes stand on the
 * results of the calls that handed it over.
 */
export function findSpeaker(messages: readonly Message[]): string | null {
  for (let at = messages.length - 1; at >= 0; at--) {
    const message = messages[at]
    const to = message?.role === 'tool' && message.data ? readHandoff(message.data['handoff']) : undefined
    if (to !== undefined) return to
  }
  return null
}

/** The agent that a note names; undefined for anything else that stands there. */
export function readHandoff(note: unknown): string | undefined {
  const { to } = (note ?? {}) as { to?: unknown }
  return typeof to === 'string' ? to : undefined
}
