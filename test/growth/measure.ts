/**
 * An operation on text, history, records or messages of any size. `prepare` is not measured. `run` gets its
 * output and must not modify it, because it is measured more than once.
 */
export interface Row<Input = unknown> {
  name: string
  /** The row's subjects, as `registry.ts` names them: `statewright.secretsShield`, `guard progress`. */
  covers: readonly string[]
  /** The start size: characters, messages, records, steps. */
  from: number
  /** The largest n, if preparing more is slow. 4n is the largest size that runs. Default 400,000. */
  atMost?: number
  /** `npm test` runs one of this many such rows per day. Default: 96. */
  oneOf?: number
  prepare: (n: number) => Input | Promise<Input>
  run: (input: Input) => unknown
}

/** A row with its input type erased, because one list holds rows of different inputs. */
export function row<Input>(definition: Row<Input>): Row {
  return definition as unknown as Row
}

/** The effort of a measurement. */
export interface Effort {
  /** The minimum cost of a row before its growth is judged, in milliseconds. */
  floorMs: number
  /** The maximum number of doublings of `from` to reach it. */
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
 * Linear cost grows 4 times from n to 4n and 2 times from 2n to 4n. Quadratic cost grows 16 times and 4
 * times. Values in between are noise or a logarithm. Both limits must be exceeded, because reads from the
 * last snapshot cost little at one size and much at another.
 */
const most = 9
const mostOfLast = 2.8

/** The garbage collector runs in between, so the minimum of several measurements counts. */
const rounds = 2

/** Steep results are measured again. Other load on the machine only increases measurements. */
const roundsInDoubt = 6

/**
 * Measures a row at n, 2n and 4n. `n` doubles until the cost at `n` reaches the floor and grows with the
 * size, so that the fixed cost of a call does not mask the growth. A row below the floor up to `atMost` is
 * cheap enough.
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

/** For display: `10,000: 3.1 ms, 20,000: 6.3 ms, 40,000: 12.9 ms`. */
export function inWords({ sizes, costs }: Growth): string {
  return sizes.map((n, i) => `${n.toLocaleString('en')}: ${costs[i]?.toFixed(1)} ms`).join(', ')
}
