import { setTimeout as sleep } from 'node:timers/promises'

type Matchers<Value> = ReturnType<typeof expect<Value>>
type Polled<All> = {
  [Name in keyof All]: All[Name] extends (...args: infer Args) => unknown
    ? (...args: Args) => Promise<void>
    : Polled<All[Name]>
}

const [patienceMs, pollMs] = [15_000, 50]

/** `expect` of a value that a page shows soon: reads it until the matcher passes, for at most 15 seconds. */
export function soon<Value>(read: () => Promise<Value>): Polled<Matchers<Value>> {
  const create = (of: (value: Value) => object, not?: object): object =>
    new Proxy(
      {},
      {
        get: (_, name: string) =>
          name === 'not' ? not : (...args: unknown[]) => poll(read, (value) => match(of(value), name, args)),
      },
    )
  return create(
    expect,
    create((value) => expect(value).not),
  ) as Polled<Matchers<Value>>
}

function match(matchers: object, name: string, args: readonly unknown[]): void {
  Reflect.apply(Reflect.get(matchers, name) as () => void, matchers, args)
}

async function poll<Value>(read: () => Promise<Value>, check: (value: Value) => void): Promise<void> {
  const end = Date.now() + patienceMs
  for (;;) {
    const value = await read()
    try {
      return check(value)
    } catch (error) {
      if (Date.now() > end) throw error
    }
    await sleep(pollMs)
  }
}
