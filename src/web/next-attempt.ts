import type { Clock } from '../core/base/clock.js'

/** Between one try for a session and the next, in milliseconds. */
const attemptDelayMs = 100

/** How often a session is tried for that somebody has who is about to let it go: for three seconds. */
export const maxAttempts = 30

export function waitForNextAttempt(clock: Clock): Promise<void> {
  return new Promise((resolve) => {
    clock.setTimeout(resolve, attemptDelayMs)
  })
}
