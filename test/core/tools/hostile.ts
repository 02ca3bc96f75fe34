import * as fc from 'fast-check'

const explode = (): never => {
  throw new Error('boom')
}

/** Values that ordinary code does not expect. */
export const oddities: (() => unknown)[] = [
  () => undefined,
  () => null,
  () => NaN,
  () => 12n,
  () => Symbol('s'),
  () => explode,
  () =>
    class Thing {
      x = 1
    },
  () => new Date(NaN),
  () => Object.create(null),
  () => Object.freeze({ a: Object.freeze([1]) }),
  () => new Map<unknown, unknown>([[{}, 1]]),
  () => new Set([new Set([1n])]),
  () => new Uint8Array(1e6),
  () => new ArrayBuffer(8),
  () => new Blob(['abc'], { type: 'text/plain' }),
  () => new Response('x'),
  () => /x/,
  () => new WeakMap(),
  () => ({
    get message() {
      return explode()
    },
  }),
  () => ({
    get cause() {
      return explode()
    },
    get name() {
      return explode()
    },
  }),
  () => ({ toJSON: explode }),
  () => ({
    toJSON() {
      return this
    },
  }),
  () => ({ toJSON: () => ({ toJSON: explode, n: 1n }) }),
  () => ({ toString: explode, valueOf: explode, [Symbol.toPrimitive]: explode }),
  () => ({
    get [Symbol.toStringTag]() {
      return explode()
    },
  }),
  () => new Proxy({}, { get: explode, ownKeys: explode, has: explode, getPrototypeOf: explode }),
  () => revoked(),
  () => {
    const self: Record<string, unknown> = {}
    self['self'] = self
    return self
  },
  () => {
    const error = new Error('round')
    error.cause = error
    return error
  },
  () => Object.assign(new Error('m'), { message: 12 }),
  () => Array(10_000_000),
  () => deep(10_000),
  () => JSON.parse('{"__proto__":{"polluted":true}}'),
  () => '\ud800'.repeat(3),
  () => '😀'.repeat(2000),
]

/** Generates one of these, or any fast-check value. */
export const hostile: fc.Arbitrary<() => unknown> = fc.oneof(
  fc.constantFrom(...oddities),
  fc
    .anything({
      withBigInt: true,
      withDate: true,
      withMap: true,
      withSet: true,
      withTypedArray: true,
      withNullPrototype: true,
      withSparseArray: true,
    })
    .map((value) => () => value),
)

function revoked(): unknown {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

function deep(levels: number): unknown {
  let value: unknown = 'bottom'
  for (let level = 0; level < levels; level += 1) value = { value }
  return value
}
