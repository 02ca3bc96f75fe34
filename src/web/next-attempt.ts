import type { Clock } from '../core/base/clock.js'

/** Between two attempts to acquire a session, in milliseconds. */
const attemptDelayMs = 100

/** Attempts to acquire a session that another process is about to release: three seconds in all. */
export const maxAttempts = 30

export function waitForNextAttempt(clock: Clock): Promise<void> {
  return new Promise((resolve) => {
    clock.setTimeout(resolve, attemptDelayMs)
  })
}
