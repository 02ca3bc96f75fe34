import { between, randomOf } from './random.mjs'
import { calls } from './script.mjs'
import { tear, tearLast } from './wal.mjs'

const sides = ['before', 'after']
const range = (count) => Array.from({ length: count }, (_, i) => i + 1)

/** All sessions to play, given the record count and duration of the run without a kill. */
export const casesOf = (seed, { head, ms }) => [
  ...atRecords(head),
  ...atLeases(),
  ...atEffects(),
  ...atInstants(seed, 24, ms),
  ...again(seed, 32, head, ms),
  ...torn(seed, 15, head),
]

/** The store is slow before a record, so that premature effects become visible. */
function atRecords(head) {
  return range(head).flatMap((seq) =>
    sides.map((when) => ({
      name: `${when} record ${seq}`,
      isSlow: when === 'before',
      kills: [{ kind: `${when} a record`, fault: { on: 'append', when, seq } }],
    })),
  )
}

/** A session is taken to check that it exists, to start, and to resume after the approval. */
function atLeases() {
  return ['acquire', 'read', 'release'].flatMap((on) =>
    range(3).flatMap((nth) =>
      sides.map((when) => ({
        name: `${when} ${on} ${nth}`,
        kills: [{ kind: 'around a lease', fault: { on, when, nth } }],
      })),
    ),
  )
}

function atEffects() {
  return calls.flatMap(({ id: callId }) =>
    sides.map((when) => ({
      name: `${when} the effect of ${callId}`,
      kills: [{ kind: `${when} an effect`, fault: { on: 'effect', when, callId } }],
    })),
  )
}

const atAnyInstant = (random, ms) => ({ kind: 'at any instant', afterMs: random() * ms })

function atInstants(seed, count, ms) {
  return range(count).map((number) => {
    const name = `instant ${number}`
    return { name, isSlow: number % 2 === 0, kills: [atAnyInstant(randomOf(seed, name), ms)] }
  })
}

/**
 * Killed two or three times. The resuming processes also die, during the read or soon after they continue.
 */
function again(seed, count, head, ms) {
  return range(count).map((number) => {
    const name = `again ${number}`
    const random = randomOf(seed, name)
    const when = sides[between(random, 0, 1)]
    const first = {
      kind: `${when} a record`,
      fault: { on: 'append', when, seq: between(random, 2, head - 8) },
    }
    const more = range(number % 3 === 0 ? 2 : 1).map(() => ({
      ...anotherKill(random, ms),
      kind: 'during resume',
    }))
    return { name, kills: [first, ...more] }
  })
}

function anotherKill(random, ms) {
  const when = sides[between(random, 0, 1)]
  const choices = [
    { fault: { on: ['acquire', 'read'][between(random, 0, 1)], when, nth: 1 } },
    { fault: { on: 'append', when, nth: between(random, 1, 4) } },
    { afterMs: (random() * ms) / 3 },
  ]
  return choices[between(random, 0, choices.length - 1)]
}

/**
 * The end of the write-ahead file is lost, as in a power loss. Right after a record it has no effects yet, so
 * every rule holds without it. Earlier lost records may already have had effects.
 */
function torn(seed, count, head) {
  return range(count).map((number) => {
    const name = `torn ${number}`
    const random = randomOf(seed, name)
    const losesEffects = number % 3 === 0
    const fault = { on: 'append', when: 'after', seq: between(random, 1, head) }
    return {
      name,
      losesEffects,
      kills: [{ kind: losesEffects ? 'log torn anywhere' : 'last record torn', fault }],
      damage: (dir) => (losesEffects ? tear : tearLast)(dir, random),
    }
  })
}
