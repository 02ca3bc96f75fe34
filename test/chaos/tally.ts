import { checkNames } from './checks.js'
import { deedNames, manners } from './deeds.js'
import { faultNames } from './faults/index.js'
import type { Plan } from './plan.js'
import type { Report } from './play.js'
import { storeNames } from './stores.js'
import { toolNames } from './tools.js'

const kinds = {
  faults: faultNames,
  tools: toolNames,
  checks: checkNames,
  stores: storeNames,
  deeds: deedNames,
  manners,
} satisfies Record<string, readonly string[]>

/** Exercised behaviors and the ends of runs. */
export class Tally {
  readonly #counts = new Map<string, Map<string, number>>()
  #runs = 0

  count(plan: Plan, { faults, ended }: Report): void {
    this.#runs += 1
    this.#add('ends', ended)
    this.#add('stores', plan.store)
    this.#add('manners', plan.manner)
    for (const name of faults) this.#add('faults', name)
    for (const name of plan.tools) this.#add('tools', name)
    for (const name of [...Object.values(plan.shields), plan.guard, plan.memory, plan.needsApproval])
      if (name !== null) this.#add('checks', name)
    for (const { deed } of plan.moments) this.#add('deeds', deed)
  }

  /** Behaviors that no run met. */
  missing(): string[] {
    return Object.entries(kinds).flatMap(([kind, names]) =>
      names.filter((name) => !this.#counts.get(kind)?.has(name)).map((name) => `${kind}: ${name}`),
    )
  }

  /** One line per kind. With `isWhole`, one per name. */
  table(isWhole: boolean): string {
    const lines = [...Object.keys(kinds), 'ends'].flatMap((kind) => {
      const counts = [...(this.#counts.get(kind) ?? [])].sort(([, a], [, b]) => b - a)
      const total = counts.reduce((sum, [, count]) => sum + count, 0)
      const head = `${kind.padEnd(8)} ${counts.length} kinds, ${total} times`
      return isWhole
        ? [head, ...counts.map(([name, count]) => `  ${`${count}`.padStart(6)}  ${name}`)]
        : [head]
    })
    return [`chaos: ${this.#runs} runs`, ...lines].join('\n')
  }

  #add(kind: string, name: string): void {
    const counts = this.#counts.get(kind) ?? new Map<string, number>()
    this.#counts.set(kind, counts)
    counts.set(name, (counts.get(name) ?? 0) + 1)
  }
}
