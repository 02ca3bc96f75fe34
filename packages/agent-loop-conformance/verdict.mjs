// How a case tells its end.

/** What the library did wrong, with what was seen. */
export class Failure extends Error {}

/** The fault did not happen: the case says nothing, and the run of the suite fails. */
export class NotCertified extends Error {}

/** The library does not claim this here, as the case found out. */
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

/** As `certify`, where the case has seen itself whether its fault landed. */
export function certifySo(isSo, why) {
  if (!isSo) throw new NotCertified(why)
}

const timeIsUp = Symbol('time')

/** The value of a promise, or a failure when there is none in time. */
export async function settles(promise, ms = 8000) {
  let timer
  const time = new Promise((resolve) => {
    timer = setTimeout(resolve, ms, timeIsUp)
  })
  const value = await Promise.race([promise, time]).finally(() => clearTimeout(timer))
  if (value === timeIsUp) throw new Failure(`no end within ${ms / 1000} s`)
  return value
}
