/** A deterministic stream of numbers in [0, 1). */
export function seeded(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Byte by byte up to this size, which covers every form. The rest comes in pieces of up to seven bytes. */
export function bytewise(bytes: Uint8Array, random: () => number, first = 8_000): Uint8Array[] {
  const single = Array.from(bytes.subarray(0, first), (byte) => Uint8Array.of(byte))
  return [...single, ...split(bytes.subarray(first), random, 7)]
}

/** Pieces of 1 to `longest` bytes. */
export function split(bytes: Uint8Array, random: () => number, longest = 400): Uint8Array[] {
  const pieces: Uint8Array[] = []
  for (let at = 0; at < bytes.length; ) {
    const end = at + 1 + Math.floor(random() * longest)
    pieces.push(bytes.subarray(at, end))
    at = end
  }
  return pieces
}

/** A body that returns these pieces, one per read. `fail` aborts it instead of closing it. */
export function streamOf(
  pieces: Iterable<Uint8Array>,
  fail?: Error,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const iterator = pieces[Symbol.iterator]()
  return new ReadableStream({
    pull(controller) {
      const next = iterator.next()
      if (!next.done) controller.enqueue(new Uint8Array(next.value))
      else if (fail !== undefined) controller.error(fail)
      else controller.close()
    },
  })
}
