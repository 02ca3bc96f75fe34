// The processes of the simulation, as the measurement asks them.
import { fork } from 'node:child_process'

export async function openWorker(url) {
  const child = fork(new URL('./worker.mjs', import.meta.url), [url], { execArgv: ['--expose-gc'] })
  const open = new Map()
  let asked = 0
  const ready = new Promise((resolve) => open.set(0, { resolve }))
  child.on('message', ({ n, value, error }) => {
    const { resolve, reject } = open.get(n)
    open.delete(n)
    if (error === undefined) resolve(value)
    else reject(new Error(error))
  })
  await ready
  return {
    ask: (what, given = {}) =>
      new Promise((resolve, reject) => {
        const n = (asked += 1)
        open.set(n, { resolve, reject })
        child.send({ n, what, ...given })
      }),
    kill: () => {
      const gone = new Promise((resolve) => child.once('exit', resolve))
      child.kill('SIGKILL')
      return gone
    },
  }
}

/** What the workers have done between two looks, together. */
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
