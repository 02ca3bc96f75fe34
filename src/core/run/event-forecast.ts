/**
 * The state after the pending events. Where events were only added, only the new ones are applied: a thousand answers
 * in a row would otherwise be half a million transitions.
 */
export class EventForecast<State, Event> {
  #from: State | undefined
  #taken: Event[] = []
  #reached: State | undefined

  apply(from: State, events: Iterable<Event>, take: (state: State, event: Event) => State): State {
    const waiting = [...events]
    const goesOn = from === this.#from && this.#taken.every((event, i) => event === waiting[i])
    const known = goesOn ? this.#taken.length : 0
    const start = goesOn && this.#reached !== undefined ? this.#reached : from
    this.#from = from
    this.#taken = waiting
    this.#reached = waiting.slice(known).reduce(take, start)
    return this.#reached
  }
}
