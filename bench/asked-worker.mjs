// A worker process with one response per request.
import { fork } from 'node:child_process'

/** Starts the program at `url`, which calls `answerParent`. Resolves when the worker is ready. */
export async function openWorker(url, args, options = {}) {
  const child = fork(url, args, options)
  const open = new Map()
  let lastId = 0
  const ready = new Promise((resolve) => open.set(0, { resolve }))
  child.on('message', ({ n, value, error }) => {
    const { resolve, reject } = open.get(n)
    open.delete(n)
    if (error === undefined) resolve(value)
    else reject(new Error(error))
  })
  await ready
  return {
    child,
    ask: (what, options = {}) =>
      new Promise((resolve, reject) => {
        const n = (lastId += 1)
        open.set(n, { resolve, reject })
        child.send({ n, what, ...options })
      }),
    kill: () => {
      const gone = new Promise((resolve) => child.once('exit', resolve))
      child.kill('SIGKILL')
      return gone
    },
  }
}

/** Runs in the worker. `does` maps each request name to its handler. */
export function answerParent(does) {
  process.on('message', async ({ n, what, ...options }) => {
    try {
      process.send({ n, value: await does[what](options) })
    } catch (error) {
      process.send({ n, error: String(error?.stack ?? error) })
    }
  })
  process.send({ n: 0 })
}
