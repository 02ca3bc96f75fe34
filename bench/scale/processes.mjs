// The processes of the simulation, as seen by the measurement.
import { openWorker as openAny } from '../asked-worker.mjs'

export const openWorker = (where) =>
  openAny(new URL('./worker.mjs', import.meta.url), [where], { execArgv: ['--expose-gc'] })

/** The combined work of the workers between two samples. */
export function between(before, after) {
  const kinds = new Map()
  for (const [n, { asked }] of after.entries()) {
    const had = new Map(before[n].asked)
    for (const [kind, { count, ms }] of asked) {
      const { count: counted = 0, ms: spent = 0 } = had.get(kind) ?? {}
      const sum = kinds.get(kind) ?? { count: 0, ms: 0 }
      kinds.set(kind, { count: sum.count + count - counted, ms: sum.ms + ms - spent })
    }
  }
  const sum = (key) => after.reduce((all, one, n) => all + one[key] - before[n][key], 0)
  return {
    steps: sum('steps'),
    cpuMs: sum('cpuMs'),
    heap: sum('heapUsed'),
    rss: sum('rss'),
    statements: [...kinds.values()].reduce((all, { count }) => all + count, 0),
    kinds,
  }
}
