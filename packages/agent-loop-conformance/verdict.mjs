// How a case reports its outcome.

/** The library's mistake, with the evidence. */
export class Failure extends Error {}

/** The fault did not happen. The case is inconclusive, and the suite run fails. */
export class NotCertified extends Error {}

/** The case found that the library does not claim this feature here. */
export class NotClaimed extends Error {}

export function claims(isSo, why) {
  if (!isSo) throw new NotClaimed(why)
}

export function check(isSo, evidence) {
  if (!isSo) throw new Failure(evidence)
}

export function certify(lane, fault) {
  if (!lane.faults.includes(fault)) throw new NotCertified(`the fault '${fault}' did not land`)
}

/** Like `certify`, for cases that verify the delivery of their fault themselves. */
export function certifySo(isSo, why) {
  if (!isSo) throw new NotCertified(why)
}

const timeIsUp = Symbol('time')

/** The value of a promise, or a failure after the timeout. */
export async function settles(promise, ms = 8000) {
  let timer
  const time = new Promise((resolve) => {
    timer = setTimeout(resolve, ms, timeIsUp)
  })
  const value = await Promise.race([promise, time]).finally(() => clearTimeout(timer))
  if (value === timeIsUp) throw new Failure(`did not end within ${ms / 1000} s`)
  return value
}
