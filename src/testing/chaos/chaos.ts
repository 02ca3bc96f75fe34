import { StatewrightError } from '../../core/base/errors.js'
import { createRandomChoices } from '../check-assertions.js'

/** A fault at a fixed position. */
export interface PlannedFault<Fault extends string> {
  /** Number of the request, call or write, from 1. */
  at: number
  fault: Fault
}

/** Random faults, reproducible by seed. */
export interface RandomFaults<Fault extends string> {
  seed: number
  /** Probability of a fault per request, call or write, from 0 to 1. */
  rate: number
  /** Faults to draw from. Defaults to the faults from which a run can recover. */
  faults?: readonly Fault[]
}

/** Which faults happen, and when. */
export type FaultPlan<Fault extends string> = readonly PlannedFault<Fault>[] | RandomFaults<Fault>

/**
 * The faults planned for a `chaosModel`, `chaosTool` or `chaosStore`. A test whose fault did not occur proves nothing.
 *
 * @example
 * const faulty = chaosModel(model, [{ at: 1, fault: 'cut' }])
 * await createAgent({ model: faulty }).run('Go.').result
 * faulty.certify()
 */
export interface Chaos<Fault extends string> {
  /** The faults that have occurred so far, in order. The list grows. */
  readonly landed: readonly PlannedFault<Fault>[]
  /**
   * Throws unless all planned faults, or at least one random fault, have occurred.
   * @throws {ChaosError} `not_landed`, with the faults that have not occurred
   */
  certify(): void
}

/** `not_landed`: a fault did not occur, so the test proves nothing. `bad_option`: the plan is invalid. */
export type ChaosErrorCode = 'not_landed' | 'bad_option'

/**
 * An invalid or unfulfilled fault plan. `subject` is the function that created the faults.
 *
 * @example
 * const store = chaosStore(memoryStore(), [{ at: 9, fault: 'refused' }])
 * try {
 *   store.certify()
 * } catch (error) {
 *   if (error instanceof ChaosError) console.log(error.message) // → chaosStore: the fault 'refused' at write 9 did not land …
 * }
 */
export class ChaosError extends StatewrightError {
  override readonly name = 'ChaosError'
  declare readonly code: ChaosErrorCode

  // oxlint-disable-next-line no-useless-constructor -- narrows the code
  constructor(code: ChaosErrorCode, message: string, subject?: string) {
    super(code, message, subject)
  }
}

export interface FaultKind<Fault extends string> {
  /** The name for error messages, such as `chaosModel`. */
  of: string
  /** The unit to count: `request`, `call` or `write`. */
  unit: string
  faults: readonly Fault[]
  /** Faults to draw from if the plan names none. */
  passing: readonly Fault[]
}

/** Counts the requests, calls or writes, and chooses the fault of each. */
export function createFaults<Fault extends string>(kind: FaultKind<Fault>, plan: FaultPlan<Fault>) {
  checkPlan(kind, plan)
  const { of, unit } = kind
  const landed: PlannedFault<Fault>[] = []
  const choose = isPlanned(plan)
    ? (at: number) => plan.find((one) => one.at === at)?.fault
    : createDraw(kind, plan)
  let count = 0

  function certify(): void {
    const times = count === 1 ? `1 ${unit}` : `${count} ${unit}s`
    if (!isPlanned(plan)) {
      if (landed.length > 0) return
      const why = `no fault landed in ${times} (seed ${plan.seed}, rate ${plan.rate})`
      throw new ChaosError('not_landed', `${of}: ${why}. Raise the rate or use another seed.`, of)
    }
    const missing = plan.filter(
      ({ at, fault }) => !landed.some((one) => one.at === at && one.fault === fault),
    )
    if (missing.length === 0) return
    const list = missing.map(({ at, fault }) => `'${fault}' at ${unit} ${at}`).join(', ')
    const what = missing.length === 1 ? `the fault ${list} did not land` : `the faults ${list} did not land`
    const text = `${of}: ${what}; there were ${times}. The test passed without the planned faults.`
    throw new ChaosError('not_landed', text, of)
  }

  return {
    chaos: { landed, certify } satisfies Chaos<Fault>,
    next(): { fault: Fault | undefined; land: () => void } {
      const at = ++count
      const fault = choose(at)
      return { fault, land: () => void (fault && landed.push({ at, fault })) }
    },
  }
}

function isPlanned<Fault extends string>(plan: FaultPlan<Fault>): plan is readonly PlannedFault<Fault>[] {
  return Array.isArray(plan)
}

function createDraw<Fault extends string>(
  { passing }: FaultKind<Fault>,
  { seed, rate, faults = passing }: RandomFaults<Fault>,
): () => Fault | undefined {
  const { whole } = createRandomChoices(seed)
  return () => {
    const isHit = whole(999_999) < rate * 1_000_000
    const fault = faults[whole(faults.length - 1)]
    return isHit ? fault : undefined
  }
}

function checkPlan<Fault extends string>({ of, unit, faults }: FaultKind<Fault>, plan: unknown): void {
  const refuse = (what: string): never => {
    throw new ChaosError('bad_option', `${of}: ${what}`, of)
  }
  const checkFault = (fault: unknown): void => {
    if (!(faults as readonly unknown[]).includes(fault))
      refuse(`unknown fault '${String(fault)}'. Available: ${faults.join(', ')}.`)
  }
  if (typeof plan !== 'object' || plan === null)
    refuse('faults must be a list of { at, fault }, or { seed, rate } for random faults.')
  if (Array.isArray(plan)) {
    if (plan.length === 0)
      refuse(`the list of faults is empty: name at least one, { at: 1, fault: '${faults[0]}' }.`)
    for (const planned of plan as readonly unknown[]) {
      const { at, fault } = (planned ?? {}) as Partial<PlannedFault<string>>
      if (!Number.isSafeInteger(at) || Number(at) < 1)
        refuse(`at must be a ${unit} number, a positive integer (got ${String(at)}).`)
      checkFault(fault)
    }
    return
  }
  const { seed, rate, faults: drawn } = plan as Partial<RandomFaults<string>>
  if (!Number.isSafeInteger(seed)) refuse(`seed must be an integer (got ${String(seed)}).`)
  if (typeof rate !== 'number' || !(rate >= 0 && rate <= 1))
    refuse(`rate must be a number from 0 to 1 (got ${String(rate)}).`)
  if (drawn === undefined) return
  if (!Array.isArray(drawn) || drawn.length === 0) refuse('faults must be a list of at least one fault.')
  for (const fault of drawn as readonly unknown[]) checkFault(fault)
}
