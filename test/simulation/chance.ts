/** A separate seed for each name (FNV-1a over the name, mixed with the seed). */
export function createHash(seed: number, name: string): number {
  let hash = (0x811c9dc5 ^ seed) | 0
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
  hash = Math.imul(hash ^ (hash >>> 12), 0x297a2d39)
  return hash ^ (hash >>> 15)
}

/** A number in [0, 1) that is always the same for these names. */
export function drawOf(seed: number, ...names: readonly (string | number)[]): number {
  return (createHash(seed, names.join('|')) >>> 0) / 4_294_967_296
}
