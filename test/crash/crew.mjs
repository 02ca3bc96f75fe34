import { fork } from 'node:child_process'

/**
 * Processes of one program. A killed process is replaced. Each gets its task as JSON in the variable
 * CREW_TASK. Their messages go to `onMessage`.
 */
export function startCrew({ program, count, createTask, onMessage }) {
  const crew = []
  let starts = 0
  let kills = 0
  let isStopping = false
  const start = (place) => {
    const env = { ...process.env, CREW_TASK: JSON.stringify(createTask(++starts)) }
    const child = fork(program, [], { env })
    child.on('message', onMessage)
    const exited = new Promise((resolve) => {
      child.once('exit', (_code, signal) => {
        if (signal === 'SIGKILL') kills += 1
        if (signal === 'SIGKILL' && !isStopping) start(place)
        resolve()
      })
    })
    crew[place] = { child, exited }
  }
  for (let place = 0; place < count; place += 1) start(place)
  return {
    /** The number of kills. */
    get kills() {
      return kills
    },
    async kill(place) {
      const { child, exited } = crew[place]
      child.kill('SIGKILL')
      await exited
    },
    /** Asks each process to stop and waits for its end. */
    async stop() {
      isStopping = true
      for (const { child, exited } of crew) {
        if (child.connected) child.send({ type: 'stop' })
        await exited
      }
    },
  }
}
