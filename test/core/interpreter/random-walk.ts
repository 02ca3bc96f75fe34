import type { AnyEventObject, AnyMachineSnapshot } from 'xstate'
import { agentSpace, listAgentEvents } from '../../../src/testing/index.js'
import { Difference, type SideBySide } from './side-by-side.js'

/** Seeded random numbers from 0 to 1 (mulberry32). */
export function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

export const { inputs } = agentSpace()
const names = Object.keys(inputs)

/** Events that the agent never receives, or not in its current state. */
const strangers: readonly AnyEventObject[] = [
  { type: 'NO_SUCH_EVENT' },
  { type: '*' },
  { type: 'xstate.error.actor.nobody', error: { code: 'x', message: 'It broke.' } },
  { type: 'xstate.done.actor.nobody', output: null },
  { type: 'xstate.error.platform.nobody', error: new Error('It broke.') },
  { type: 'xstate.done.state.agent', output: null },
  { type: 'xstate.stop' },
]

/**
 * Random runs of the agent, until both interpreters have processed this many events. Returns the first
 * difference.
 */
export function walk(pair: SideBySide, macrosteps: number, seed: number): Difference | null {
  const random = createRandom(seed)
  const pick = <Value>(list: readonly Value[]): Value => list[Math.floor(random() * list.length)] as Value
  const starts = new Map<string, AnyMachineSnapshot>()
  const events = new EventPool(random)
  const end = pair.macrosteps + macrosteps
  while (pair.macrosteps < end) {
    const name = pick(names)
    let snapshot = starts.get(name) ?? pair.start(inputs[name])
    starts.set(name, snapshot)
    // One event past the end, because a finished machine also accepts events.
    for (let length = 0, isOver = false; length < 60 && !isOver; length++) {
      isOver = snapshot.status !== 'active'
      const next = pair.take(snapshot, random() < 0.02 ? pick(strangers) : events.draw(snapshot))
      if (next instanceof Difference) return next
      snapshot = next
    }
  }
  return null
}

/**
 * Events that were possible in some state. Most come from earlier visits, because a new listing is slower.
 */
export class EventPool {
  readonly #random: () => number
  readonly #byState = new Map<string, AnyEventObject[]>()
  readonly #all: AnyEventObject[] = []

  constructor(random: () => number) {
    this.#random = random
  }

  draw(snapshot: AnyMachineSnapshot): AnyEventObject {
    const state = JSON.stringify(snapshot.value)
    const known = this.#byState.get(state)
    const dice = this.#random()
    if (known === undefined || dice < 0.1) return this.#pick(this.#refresh(state, snapshot))
    return this.#pick(dice < 0.2 ? this.#all : known)
  }

  #refresh(state: string, snapshot: AnyMachineSnapshot): AnyEventObject[] {
    const events = Object.values(listAgentEvents(snapshot as never))
    const known = [...(this.#byState.get(state) ?? []), ...events].slice(-200)
    this.#byState.set(state, known)
    this.#all.push(this.#pick(events))
    if (this.#all.length > 500) this.#all.splice(0, 100)
    return events
  }

  #pick(events: readonly AnyEventObject[]): AnyEventObject {
    return events[Math.floor(this.#random() * events.length)] as AnyEventObject
  }
}
