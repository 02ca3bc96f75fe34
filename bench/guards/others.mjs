// Detectors in the manner of other programs, written from their documented rules. Each is given the steps of one turn
// at a time and says after which step it stops; null: it does not.

const same = (a, b) => a.name === b.name && a.arguments === b.arguments
const equal = (a, b) => a.length === b.length && a.every((call, i) => same(call, b[i]))
const pair = (a, b) => equal(a, b) && a.every((call, i) => call.result === b[i].result)
const isFailed = (calls) => calls.every(({ status = 'ok' }) => status !== 'ok')

/** Stops when the last `count` steps ask for the same, whatever came of it. */
const identical = (count) => (steps) => {
  let run = 1
  for (let i = 1; i < steps.length; i++) {
    run = equal(steps[i], steps[i - 1]) ? run + 1 : 1
    if (run >= count) return i
  }
  return null
}

/** Stops when one call comes `count` times among the last `window`, whatever came of it. */
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
 * A stuck detector: four equal pairs of call and result, three equal calls that failed, or two pairs in turn three
 * times over.
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
  'a stuck detector': stuck,
}
