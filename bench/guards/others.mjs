// Detectors modeled on the documented rules of other programs. Each detector receives the steps of one turn in order, and returns
// the step after which it stops, or null.

const same = (a, b) => a.name === b.name && a.arguments === b.arguments
const equal = (a, b) => a.length === b.length && a.every((call, i) => same(call, b[i]))
const pair = (a, b) => equal(a, b) && a.every((call, i) => call.result === b[i].result)
const isFailed = (calls) => calls.every(({ status = 'ok' }) => status !== 'ok')

/** Stops when the last `count` steps request the same calls, regardless of their results. */
const identical = (count) => (steps) => {
  let run = 1
  for (let i = 1; i < steps.length; i++) {
    run = equal(steps[i], steps[i - 1]) ? run + 1 : 1
    if (run >= count) return i
  }
  return null
}

/** Stops when one call occurs `count` times in the last `window`, regardless of its results. */
const window = (count, size) => (steps) => {
  const calls = []
  for (const [i, step] of steps.entries()) {
    for (const call of step) {
      calls.push(call)
      if (calls.slice(-size).filter((one) => same(one, call)).length >= count) return i
    }
  }
  return null
}

/**
 * A stuck detector. It stops after four equal call-result pairs, three equal failed calls, or two alternating pairs that repeat
 * three times.
 */
const stuck = (steps) => {
  for (let i = 2; i < steps.length; i++) {
    const last = (count) => steps.slice(i - count + 1, i + 1)
    if (i >= 3 && last(4).every((one) => pair(one, steps[i]))) return i
    if (last(3).every((one) => equal(one, steps[i]) && isFailed(one))) return i
    if (
      i >= 5 &&
      !pair(steps[i], steps[i - 1]) &&
      last(4).every((one, at) => pair(one, steps[i - 5 + (at % 2)]))
    )
      return i
  }
  return null
}

export const others = {
  'three identical calls': identical(3),
  'five identical calls': identical(5),
  'three identical calls among the last twenty': window(3, 20),
  "OpenHands' stuck detector": stuck,
}
