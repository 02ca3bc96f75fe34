import type { Fault, Loss, ModelFault, Point, When } from './plan.js'
import type { Life, World } from './world.js'

/** The faults of processes. */
export interface Fates {
  kill(life: Life, ms: number): void
  pause(life: Life, ms: number): void
}

/** The faults of a plan. Each strikes once, at its moment. */
export class Faults {
  readonly #world: World
  readonly #faults: readonly Fault[]
  readonly #fates: Fates
  readonly #counts = new Map<Point, number>()
  #requests = 0
  /** The current extra latency to the store. */
  delay = 0
  #outage: Loss | null = null

  constructor(world: World, faults: readonly Fault[], fates: Fates) {
    this.#world = world
    this.#faults = faults
    this.#fates = fates
    for (const fault of faults) {
      if (fault.kind === 'outage') {
        world.after(fault.at, null, () => {
          world.trouble('store', `is away: ${fault.how}`)
          this.#outage = fault.how
        })
        world.after(fault.at + fault.ms, null, () => {
          if (this.#outage) world.trouble('store', 'is back')
          this.#outage = null
        })
      }
      if (fault.kind === 'slow') {
        world.after(fault.at, null, () => {
          world.trouble('store', `is slow, by ${fault.by} ms`)
          this.delay = fault.by
        })
        world.after(fault.at + fault.ms, null, () => {
          world.trouble('store', 'is as fast as before')
          this.delay = 0
        })
      }
    }
  }

  /** Disables all further faults. */
  end(): void {
    this.#outage = null
    this.delay = 0
  }

  /** The fate of the next query of this kind. */
  lossOf(point: Point): Loss | null {
    if (this.#world.isCalm) return null
    const nth = this.#counts.get(point) ?? 0
    const due = this.#faults.find(
      (fault) => fault.kind === 'store' && fault.point === point && fault.nth === nth + 1,
    )
    return due?.kind === 'store' ? due.how : this.#outage
  }

  /** Counts an operation of its kind. Kills or suspends its process right before or after it. */
  strike(point: Point, life: Life): (phase: 'before' | 'after') => void {
    const nth = (this.#counts.get(point) ?? 0) + 1
    this.#counts.set(point, nth)
    if (this.#world.isCalm) return () => undefined
    const due = this.#faults.filter(
      (fault) => (fault.kind === 'kill' || fault.kind === 'pause') && isAt(fault.when, point, nth),
    )
    if (due.length === 0) return () => undefined
    return (phase) => {
      for (const fault of due) {
        if (fault.kind !== 'kill' && fault.kind !== 'pause') continue
        if (!('phase' in fault.when) || fault.when.phase !== phase || !life.isAlive) continue
        this.#world.trouble(life.name, `${phase} ${point} ${nth}:`)
        if (fault.kind === 'kill') this.#fates.kill(life, fault.ms)
        else if (!life.isPaused) this.#fates.pause(life, fault.ms)
      }
    }
  }

  /** How the next model request fails, or null if it succeeds. */
  nextModelFault(): ModelFault | null {
    this.#requests += 1
    if (this.#world.isCalm) return null
    const due = this.#faults.find((fault) => fault.kind === 'model' && fault.nth === this.#requests)
    return due?.kind === 'model' ? due.how : null
  }
}

const isAt = (when: When, point: Point, nth: number): boolean =>
  'point' in when && when.point === point && when.nth === nth
