/**
 * The fingerprints that a guard has refused in this run, latest last. The second refusal of the same call halts, so
 * they are remembered beyond the streak that led to the first.
 */
export type Refusals = readonly string[]

export const mostRefusals = 12

export function refused(refusals: Refusals, fingerprints: readonly string[]): string[] {
  const others = refusals.filter((one) => !fingerprints.includes(one))
  return [...others, ...fingerprints].slice(-mostRefusals)
}
