import { Refusal } from './refusal.js'
import type { Scenario } from './scenario.js'

/** The turn that answers a request. */
export interface Cue {
  turn: Scenario['turns'][number]
  /** Index of the turn in its scenario. */
  index: number
  /** How many requests of the conversation have been answered, this one included. */
  play: number
}

/** Where one conversation stands in its scenario. */
export class Playback {
  readonly #scenario: Scenario
  #played = 0

  constructor(scenario: Scenario) {
    this.#scenario = scenario
  }

  /** Turns that have not been played yet; Infinity when the scenario loops. */
  get remaining(): number {
    const { turns, onExhausted } = this.#scenario
    return onExhausted === 'loop' ? Infinity : Math.max(0, turns.length - this.#played)
  }

  /** Takes the next turn. @throws Refusal when there is none */
  takeNext(): Cue {
    const { name, turns, onExhausted = 'error' } = this.#scenario
    const { length } = turns
    const index =
      onExhausted === 'loop'
        ? this.#played % length
        : onExhausted === 'repeatLast'
          ? Math.min(this.#played, length - 1)
          : this.#played
    const turn = turns[index]
    if (turn === undefined) {
      const scenario = name === undefined ? 'the scenario' : `the scenario '${name}'`
      throw new Refusal(
        400,
        'rehearsal_exhausted',
        `All ${length} turns of ${scenario} have been played. Add a turn, or set onExhausted to 'repeatLast' or 'loop'.`,
      )
    }
    this.#played++
    return { turn, index, play: this.#played }
  }
}
