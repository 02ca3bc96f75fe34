/** Sources of nondeterminism. */
const forbidden: readonly (readonly [object, string])[] = [
  [Date, 'now'],
  [Math, 'random'],
  [performance, 'now'],
  [crypto, 'randomUUID'],
  [crypto, 'getRandomValues'],
  [globalThis, 'setTimeout'],
  [globalThis, 'setInterval'],
  [globalThis, 'setImmediate'],
]

/** Reports every use of the platform's time or randomness during `work`. */
export async function forbidPlatform<Value>(
  work: () => Promise<Value>,
): Promise<{ value: Value; uses: string[] }> {
  const uses: string[] = []
  const originals = forbidden.map(([owner, name]) => {
    const descriptor = Object.getOwnPropertyDescriptor(owner, name)
    const real = (owner as Record<string, unknown>)[name] as (...args: unknown[]) => unknown
    Object.defineProperty(owner, name, {
      configurable: true,
      writable: true,
      value: (...args: unknown[]) => {
        uses.push(`${name}: ${new Error().stack?.split('\n')[2]?.trim()}`)
        return real.apply(owner, args)
      },
    })
    return { owner, name, descriptor }
  })
  try {
    return { value: await work(), uses }
  } finally {
    for (const { owner, name, descriptor } of originals) {
      if (descriptor) Object.defineProperty(owner, name, descriptor)
      else delete (owner as Record<string, unknown>)[name]
    }
  }
}
