type Matchers<Value> = ReturnType<typeof expect<Value>>
type Polled<All> = {
  [Name in keyof All]: All[Name] extends (...args: infer Args) => unknown
    ? (...args: Args) => Promise<void>
    : Polled<All[Name]>
}

const patienceMs = 15_000

/** `expect` of a value that a page shows soon: reads it until the matcher passes, for at most 15 seconds. */
export function soon<Value>(read: () => Promise<Value>): Polled<Matchers<Value>> {
  const matchers = (isNegated: boolean): object =>
    new Proxy(
      {},
      {
        get: (_, name: string) =>
          name === 'not'
            ? matchers(true)
            : async (...args: unknown[]) => {
                for (const end = Date.now() + patienceMs; ; ) {
                  // oxlint-disable no-await-in-loop -- one reading after the other
                  const value: unknown = await read()
                  const all = (isNegated ? expect(value).not : expect(value)) as never as Record<
                    string,
                    (...args: unknown[]) => void
                  >
                  try {
                    all[name]?.(...args)
                    return
                  } catch (error) {
                    if (Date.now() > end) throw error
                  }
                  await new Promise((resolve) => setTimeout(resolve, 50))
                }
              },
      },
    )
  return matchers(false) as Polled<Matchers<Value>>
}
