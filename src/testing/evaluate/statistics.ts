/** A value with its 95 % interval. */
export interface Interval {
  value: number
  low: number
  high: number
}

/** Resamples of a bootstrap: more of them move a bound by less than a hundredth of the interval. */
const resamples = 2000

/**
 * The mean, with a percentile bootstrap over the values. The same seed gives the same interval. Of one value the interval
 * is that value. Null without a value.
 */
export function bootstrapMean(values: readonly number[], seed: number): Interval | null {
  if (values.length === 0) return null
  const random = createRandom(seed)
  const means = new Float64Array(resamples)
  for (let i = 0; i < resamples; i += 1) {
    let sum = 0
    for (let k = 0; k < values.length; k += 1) sum += values[Math.floor(random() * values.length)] ?? 0
    means[i] = sum / values.length
  }
  means.sort()
  return { value: getMean(values), low: findQuantile(means, 0.025), high: findQuantile(means, 0.975) }
}

/**
 * A rate, with Wilson's score interval for `count` trials: unlike a bootstrap, it has a width where all or none have passed.
 * Null without a trial.
 */
export function computeWilsonInterval(rate: number, count: number): Interval | null {
  if (count === 0) return null
  const z = 1.959964
  const spread = z * Math.sqrt((rate * (1 - rate)) / count + (z * z) / (4 * count * count))
  const divisor = 1 + (z * z) / count
  const centre = rate + (z * z) / (2 * count)
  return {
    value: rate,
    low: Math.max(0, (centre - spread) / divisor),
    high: Math.min(1, (centre + spread) / divisor),
  }
}

/** The quantile of sorted values, interpolated between its neighbours; NaN without a value. */
export function findQuantile(sorted: ArrayLike<number>, share: number): number {
  const at = (sorted.length - 1) * share
  const below = sorted[Math.floor(at)] ?? Number.NaN
  const above = sorted[Math.ceil(at)] ?? below
  return below + (above - below) * (at - Math.floor(at))
}

export function getMean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

/** Mulberry32: numbers from 0 to 1 that follow from the seed. */
export function createRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
