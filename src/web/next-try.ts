import type { Clock } from '../core/base/clock.js'

/** Between one try for a session and the next, in milliseconds. */
const betweenMs = 100

/** How often a session is tried for that somebody has who is about to let it go: for three seconds. */
export const mostTries = 30

export function nextTry(clock: Clock): Promise<void> {
  return new Promise((resolve) => {
    clock.setTimeout(resolve, betweenMs)
  })
}
