/**
 * One thing that takes text, history, records or messages, made at any size. `prepare` is not measured; `run` gets what
 * `prepare` made, and must leave it as it was, because it is measured more than once.
 */
export interface Row<Input = unknown> {
  name: string
  /** What the row stands for, as `registry.ts` calls it: `statewright.secretsShield`, `guard progress`. */
  covers: readonly string[]
  /** The size to begin with: characters, messages, records, steps. */
  from: number
  /** The largest n, where preparing more takes long. 4n is the largest size that runs. Default 400,000. */
  atMost?: number
  /** `npm test` takes one of so many such rows a day. Default: 24. */
  oneOf?: number
  prepare: (n: number) => Input | Promise<Input>
  run: (input: Input) => unknown
}

/** A row with the type of its input: rows of different inputs stand in one list. */
export function row<Input>(given: Row<Input>): Row {
  return given as unknown as Row
}

/** How much is done to be sure. */
export interface Effort {
  /** What a row has to cost before its growth is judged, in milliseconds. */
  floorMs: number
  /** How often `from` may be doubled to come to that. */
  doublings: number
}

/** The cost of a row in milliseconds of CPU. */
export interface Growth {
  sizes: readonly [n: number, twice: number, fourTimes: number]
  costs: readonly [n: number, twice: number, fourTimes: number]
  /** It grows more than `most` times from n to 4n, and more than `mostOfLast` times from 2n to 4n. */
  isSteep: boolean
}

/**
 * Linear cost grows four times from n to 4n, and quadratic cost 16 times; from 2n to 4n twice, and four times. What lies
 * between is noise or a logarithm. Both have to be seen: what is read from the last snapshot on costs little at one size
 * and much at another.
 */
const most = 9
const mostOfLast = 2.8

/** The collector of garbage takes its turn in between, so that the least of several measurements counts. */
const rounds = 2

/** What seems steep is measured again: a machine at work on other things makes measurements larger, never smaller. */
const roundsInDoubt = 6

/**
 * Measures a row at n, 2n and 4n. `n` is doubled until the cost at `n` reaches the floor and grows with the size, so that
 * what every call costs, whatever its size, hides nothing. A row that stays below the floor up to `atMost` is cheap enough.
 */
export async function growthOf(
  { from, atMost = 400_000, prepare, run }: Row,
  { floorMs, doublings }: Effort,
): Promise<Growth> {
  const cost = async (input: unknown): Promise<number> => {
    const before = process.cpuUsage()
    await run(input)
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1_000
  }
  let n = from
  let inputs = [await prepare(n), await prepare(2 * n)]
  const steady = async (input: unknown) => Math.min(await cost(input), await cost(input))
  for (;;) {
    const [once, twice] = [await steady(inputs[0]), await steady(inputs[1])]
    const isLarge = 2 * n > Math.min(atMost, from * 2 ** doublings)
    if ((once >= floorMs && twice >= 1.5 * once) || isLarge) break
    n *= 2
    inputs = [inputs[1], await prepare(2 * n)]
  }
  inputs.push(await prepare(4 * n))
  const costs: [number, number, number] = [Infinity, Infinity, Infinity]
  const isSteep = (): boolean =>
    costs[2] > most * Math.max(costs[0], floorMs / 4) && costs[2] > mostOfLast * costs[1]
  for (let round = 0; round < rounds || (round < roundsInDoubt && isSteep()); round += 1) {
    for (const i of [0, 1, 2] as const) costs[i] = Math.min(costs[i], await cost(inputs[i]))
  }
  return { sizes: [n, 2 * n, 4 * n], costs, isSteep: isSteep() }
}

/** For people: `10,000: 3.1 ms, 20,000: 6.3 ms, 40,000: 12.9 ms`. */
export function inWords({ sizes, costs }: Growth): string {
  return sizes.map((n, i) => `${n.toLocaleString('en')}: ${costs[i]?.toFixed(1)} ms`).join(', ')
}
