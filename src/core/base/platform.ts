/**
 * What a platform gives besides time: chance, and the turns of its event loop. Time is the clock's (`clock.ts`). With both of
 * their own, tests play a run a second time exactly as it was.
 */
export interface Platform {
  /** A number from 0, below 1. */
  random(): number
  /** Of a platform that has none: `undefined`. */
  createUuid(): string | undefined
  fillWithChance(bytes: Uint8Array<ArrayBuffer>): Uint8Array
  /** Calls back once everything else that waits in this process, or in this page, has had its turn. */
  runNextTurn(work: () => void): void
  /** Calls back a moment later: the caller has had the time to look at what it was just given. */
  runSoon(work: () => void): void
}

/** The one that the code runs on. */
const ownPlatform: Platform = {
  random: () => Math.random(),
  // Pages that did not come over https have no `randomUUID`.
  createUuid: () => crypto.randomUUID?.(),
  fillWithChance: (bytes) => crypto.getRandomValues(bytes),
  runNextTurn: (work) => {
    // Browsers have no such thing, and Node makes a timer of 0 ms wait for 1.
    if (typeof setImmediate === 'function') setImmediate(work)
    else setTimeout(work, 0)
  },
  runSoon: (work) => {
    setTimeout(work)
  },
}

let current = ownPlatform

/** The platform at hand. */
export const getPlatform = (): Platform => current

/** Replaces the platform for everything in this process, for tests; without one, it is the platform's own again. */
export function setPlatform(platform: Platform = ownPlatform): void {
  current = platform
}
