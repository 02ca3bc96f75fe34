// A process clock with an offset that changes repeatedly.
import { randomOf } from './random.mjs'

/**
 * Time starts at `baseAt` for real time `startedAt`, and runs `speed` times as fast. Every few hundred
 * milliseconds the clock jumps to another offset of at most `skewMs`, ahead or behind. Timers and the
 * monotonic clock ignore the jumps.
 */
export function createSkewedClock({ seed, speed, skewMs, startedAt, baseAt }) {
  const random = randomOf(seed, 'clock')
  let skew = 0
  let jumpAt = 0
  return {
    now() {
      const real = Date.now()
      if (real >= jumpAt) {
        skew = Math.round((random() * 2 - 1) * skewMs)
        jumpAt = real + 100 + random() * 500
      }
      return Math.floor(baseAt + (real - startedAt) * speed + skew)
    },
    elapsed: () => performance.now() * speed,
    setTimeout: (fire, ms) => setTimeout(() => fire(), Math.min(ms / speed, 2 ** 31 - 1)),
    clearTimeout: (id) => clearTimeout(id),
  }
}
