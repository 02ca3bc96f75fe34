/**
 * Numbers from 0 to 1 derived from a seed and a name (Mulberry32), so that one case can be repeated alone.
 */
export function randomOf(seed, name) {
  let state = [...name].reduce(
    (hash, letter) => Math.imul(hash ^ letter.codePointAt(0), 0x01000193),
    seed | 0,
  )
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let bits = Math.imul(state ^ (state >>> 15), 1 | state)
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32
  }
}

/** An integer from `from` to `to`. */
export const between = (random, from, to) => from + Math.floor(random() * (to - from + 1))
